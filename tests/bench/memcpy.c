// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The ceiling of every bandwidth on this host: 64 KiB copied between the same
 * two buffers, one CPU.  Prints GB/s (10^9), median of short batches.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BATCHES 101
#define ROUNDS 500
#define SIZE 65536

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(void)
{
	char *from = aligned_alloc(4096, SIZE), *to = aligned_alloc(4096, SIZE);
	double sample[BATCHES];
	int i, j;

	if (!from || !to)
		return 1;
	memset(from, 1, SIZE);
	memset(to, 2, SIZE);
	for (i = 0; i < BATCHES; i++) {
		double start = now_ns();

		for (j = 0; j < ROUNDS; j++) {
			memcpy(to, from, SIZE);
			/* Not to be optimised away. */
			__asm__ volatile("" : : "r"(to), "r"(from) : "memory");
		}
		sample[i] = (double)SIZE * ROUNDS / (now_ns() - start);
	}
	qsort(sample, BATCHES, sizeof(sample[0]), ascending);
	printf("%.2f\n", sample[BATCHES / 2]);
	return 0;
}

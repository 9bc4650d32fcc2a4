// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The floor of every latency on this host: two processes on two CPUs, one
 * cache line each way, store and poll.  Prints the one-way time in ns, median
 * of short batches.  On virtual machines it may have two values, by where the
 * hypervisor has put the two CPUs at the moment.
 */
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BATCHES 101
#define ROUNDS 2000

struct cell {
	uint64_t value;
	char pad[120]; /* adjacent lines are fetched in pairs */
};

static struct cell *cell;

static void pin(int nth)
{
	cpu_set_t all, one;
	int cpu;

	if (sched_getaffinity(0, sizeof(all), &all))
		return;
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all) && nth-- == 0) {
			CPU_ZERO(&one);
			CPU_SET(cpu, &one);
			sched_setaffinity(0, sizeof(one), &one);
			return;
		}
}

static void put(int side, uint64_t value)
{
	__atomic_store_n(&cell[side].value, value, __ATOMIC_RELEASE);
}

static void await(int side, uint64_t value)
{
	while (__atomic_load_n(&cell[side].value, __ATOMIC_ACQUIRE) != value)
		;
}

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
	double sample[BATCHES];
	uint64_t n = 0;
	pid_t child;
	int i, j;

	cell = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (cell == MAP_FAILED) {
		perror("mmap");
		return 1;
	}
	child = fork();
	if (child < 0) {
		perror("fork");
		return 1;
	}
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pin(1);
		for (;;) {
			n++;
			await(0, n);
			put(1, n);
		}
	}
	pin(0);
	for (i = 0; i < BATCHES; i++) {
		double start = now_ns();

		for (j = 0; j < ROUNDS; j++) {
			n++;
			put(0, n);
			await(1, n);
		}
		sample[i] = (now_ns() - start) / ROUNDS / 2;
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	qsort(sample, BATCHES, sizeof(sample[0]), ascending);
	printf("%.1f\n", sample[BATCHES / 2]);
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Messages round a ring and a sum over all, every byte checked. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT 100000

static const int sizes[] = {0, 1, 8, 4096, 65536, 1 << 20, 8 << 20};

static unsigned char byte(int rank, int size, int at)
{
	return (unsigned char)(7 * at + 31 * rank + size);
}

static long ring(int rank, int ranks, int size)
{
	unsigned char *out = malloc((size_t)size + 1);
	unsigned char *in = calloc(1, (size_t)size + 1);
	int left = (rank + ranks - 1) % ranks, i;
	long bad = 0;

	if (!out || !in)
		MPI_Abort(MPI_COMM_WORLD, 2);
	for (i = 0; i < size; i++)
		out[i] = byte(rank, size, i);
	MPI_Sendrecv(out, size, MPI_BYTE, (rank + 1) % ranks, 5, in, size,
		     MPI_BYTE, left, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (i = 0; i < size; i++)
		bad += in[i] != byte(left, size, i);
	free(out);
	free(in);
	return bad;
}

static long sum(int rank, int ranks)
{
	static double in[COUNT], out[COUNT];
	long bad = 0;
	int i;

	for (i = 0; i < COUNT; i++)
		in[i] = rank + i;
	MPI_Allreduce(in, out, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	for (i = 0; i < COUNT; i++)
		bad += out[i] != (double)ranks * i + ranks * (ranks - 1) / 2.;
	return bad;
}

/* Rank 0's window, written and added to by all others. */
static long one_sided(int rank, int ranks)
{
	long *window, one = 1, bad = 0, mine = rank;
	MPI_Win win;
	int i;

	MPI_Win_allocate((ranks + 1) * sizeof(long), sizeof(long),
			 MPI_INFO_NULL, MPI_COMM_WORLD, &window, &win);
	for (i = 0; i <= ranks; i++)
		window[i] = 0;
	MPI_Win_fence(0, win);
	MPI_Put(&mine, 1, MPI_LONG, 0, rank, 1, MPI_LONG, win);
	MPI_Accumulate(&one, 1, MPI_LONG, 0, ranks, 1, MPI_LONG, MPI_SUM, win);
	MPI_Win_fence(0, win);
	for (i = 0; !rank && i < ranks; i++)
		bad += window[i] != i;
	bad += !rank && window[ranks] != ranks;
	MPI_Win_free(&win);
	return bad;
}

int main(int argc, char **argv)
{
	long bad = 0, all;
	int rank, ranks;
	size_t i;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		bad += ring(rank, ranks, sizes[i]);
	bad += sum(rank, ranks);
	bad += one_sided(rank, ranks);
	MPI_Reduce(&bad, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
	if (!rank)
		printf("%d ranks, %ld wrong\n", ranks, all);
	MPI_Finalize();
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The kernels of test_gda_opencl.c. */
#include "scalefabric/sf_gda.h"

#define FOREVER 2000000000u

/* Where a kernel's data is: b's region, a's region as the queue knows it. */
struct where {
	sf_u64 remote, own;
	sf_u32 rkey, lkey;
};

static struct sf_gda_mem remote_at(__global const struct where *w, sf_u64 off)
{
	struct sf_gda_mem m = {w->remote + off, w->rkey};

	return m;
}

static struct sf_gda_mem own_at(__global const struct where *w, sf_u64 off)
{
	struct sf_gda_mem m = {w->own + off, w->lkey};

	return m;
}

/* Every work-item adds @rounds times 1 to a word of its own, and puts. */
__kernel void many(__global struct sf_gda_qp *q, __global const struct where *w,
		   sf_u32 rounds, __global int *res)
{
	sf_u64 id = get_global_id(0), n = get_global_size(0), t = 0;
	sf_u64 data[4] = {0, 0, 0, 0};
	sf_u32 i;
	int r = 0;

	for (i = 0; i < rounds && !r; i++) {
		r = sf_gda_add(q, remote_at(w, 8 * id), 1, 0, &t);
		data[0] = id << 32 | i;
		if (!r)
			r = sf_gda_put_inline(q, remote_at(w, 8 * (n + id)),
					      data, 8, 0, &t);
	}
	if (!r)
		r = sf_gda_wait(q, t, FOREVER);
	res[id] = r;
}

/* A work-group fills a batch together; its first item reserves and rings. */
__kernel void batch(__global struct sf_gda_qp *q,
		    __global const struct where *w, __global int *res)
{
	__local sf_u64 first;
	__local int reserved;
	sf_u64 id = get_global_id(0), index, data[4] = {0, 0, 0, 0};
	sf_u32 n = (sf_u32)get_local_size(0);

	if (!get_local_id(0)) {
		index = 0;
		reserved = sf_gda_reserve(q, n, 0, &index);
		first = index;
	}
	barrier(CLK_LOCAL_MEM_FENCE);
	if (!reserved) {
		__global struct sf_wqe *slot;

		index = first + get_local_id(0);
		slot = sf_gda_slot(q, index);
		data[0] = id + 1;
		sf_gda_post(q, slot, index,
			    sf_gda_fill_put_inline(slot, remote_at(w, 8 * id),
						   data, 8, 0),
			    SF_GDA_NO_RING);
	}
	barrier(CLK_GLOBAL_MEM_FENCE);
	if (!get_local_id(0) && !reserved) {
		sf_gda_ring(q, first + n);
		res[id / n] = sf_gda_wait(q, first + n - 1, FOREVER);
	}
}

/* A put of 8 bytes and a signal, by each item. */
__kernel void signal(__global struct sf_gda_qp *q,
		     __global const struct where *w, sf_u64 word,
		     __global int *res)
{
	struct sf_gda_signal s = {w->remote + word, w->rkey, 3};
	sf_u64 id = get_global_id(0), t;

	res[id] = sf_gda_put_signal(q, remote_at(w, 8 * id), own_at(w, 8 * id),
				    8, s, 0, &t);
}

/* The other side: waits for all signals, then reads what they announce. */
__kernel void gather(__global struct sf_gda_qp *q, __global sf_u64 *word,
		     sf_u64 value, __global const sf_u64 *data, sf_u32 n,
		     __global sf_u64 *sum, __global int *res)
{
	sf_u64 s = 0;
	sf_u32 i;

	res[0] = sf_gda_wait_signal(q, word, value, FOREVER);
	for (i = 0; i < n; i++)
		s += data[i];
	*sum = s;
}

/* Atomics and a get, whose results are looked at here. */
__kernel void fetch(__global struct sf_gda_qp *q,
		    __global const struct where *w, __global sf_u64 *own,
		    __global int *res)
{
	sf_u64 t;
	int r;

	r = sf_gda_fetch_add(q, remote_at(w, 0), 5, own_at(w, 0), 0, &t);
	if (!r)
		r = sf_gda_cas(q, remote_at(w, 0), 105, 7, own_at(w, 8), 0,
			       &t);
	if (!r)
		r = sf_gda_get(q, own_at(w, 16), remote_at(w, 0), 8, 0, &t);
	if (!r)
		r = sf_gda_quiet(q, FOREVER);
	if (!r && (own[0] != 100 || own[1] != 105 || own[2] != 7))
		r = 1000;
	res[0] = r;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Posting, ringing and waiting from a kernel, without a CPU in the path.  One
 * header for CUDA, HIP, OpenCL C (1.2 and on) and host threads in C11 or C++.
 * docs/gpu.md tells how to use it, docs/hardware.md what it writes.
 *
 * Three steps, which the sf_gda_put() family does in one go:
 *   reserve  index = fetch-and-add; wait until the slot is free
 *   fill     the body of the slot: sf_gda_fill_...() returns the head
 *   post     one release fence; the commit word; the doorbell
 *
 * Any number of threads may post to one queue: no lock, no order among them.
 * Nothing is stored to a slot before it is known to be free.  No wait is for
 * ever: each ends with success, an error of the queue, or after a number of
 * looks.  Functions return 0, enum sf_gda_result (negative), or the enum
 * sf_status (positive) of the request with which the queue failed.
 *
 * Ordering: what the calling thread stored before a post is visible to the
 * device (and with it at the target) when the request runs.  A wait that
 * returned 0 acquires what the device has stored.
 */
#ifndef SF_GDA_H
#define SF_GDA_H

#include "scalefabric/sf_hw.h"

/* ------------------------------------------------------------------------
 * Where the languages differ.
 *
 * SF_GDA_GLOBAL  address space of queues
 * SF_GDA_ATOMIC  (op, arguments, order) in system scope
 * SF_GDA_FENCE   release, system scope; is cumulative
 * SF_GDA_PAUSE   between two looks; define it for threads that must yield
 * SF_GDA_FIRST   (lanes, v): lane 0's v, when all lanes have come here
 */
#if defined(__OPENCL_C_VERSION__) || defined(__OPENCL_VERSION__)
#define SF_GDA_GLOBAL __global
#else
#define SF_GDA_GLOBAL
#endif

#if defined(__CUDA_ARCH__)
#define SF_GDA_ATOMIC(op, ...) \
	__nv_atomic_##op(__VA_ARGS__, __NV_THREAD_SCOPE_SYSTEM)
#define SF_GDA_FENCE() asm volatile("fence.acq_rel.sys;" ::: "memory")
#define SF_GDA_FIRST(lanes, v)                      \
	(__syncwarp(0xffffffffU >> (32 - (lanes))), \
	 __shfl_sync(0xffffffffU >> (32 - (lanes)), (sf_u64)(v), 0))
#else
#define SF_GDA_ATOMIC(op, ...) __atomic_##op(__VA_ARGS__)
#define SF_GDA_FENCE() __atomic_thread_fence(__ATOMIC_RELEASE)
#if defined(__AMDGCN__)
#define SF_GDA_FIRST(lanes, v)                                            \
	(__builtin_amdgcn_wave_barrier(),                                 \
	 (sf_u64)(sf_u32)__builtin_amdgcn_readfirstlane((int)((v) >> 32)) \
			 << 32 |                                          \
		 (sf_u32)__builtin_amdgcn_readfirstlane((int)(v)))
#elif defined(__opencl_c_subgroups)
#define SF_GDA_FIRST(lanes, v)                    \
	(sub_group_barrier(CLK_GLOBAL_MEM_FENCE), \
	 sub_group_broadcast((sf_u64)(v), 0))
#else /* a thread is a group of its own */
#define SF_GDA_FIRST(lanes, v) (v)
#endif
#endif

#if defined(SF_GDA_PAUSE)
#elif defined(__CUDA_ARCH__)
#define SF_GDA_PAUSE() __nanosleep(20)
#elif defined(__AMDGCN__)
#define SF_GDA_PAUSE() __builtin_amdgcn_s_sleep(1)
#elif defined(__x86_64__) && !defined(__OPENCL_C_VERSION__)
#define SF_GDA_PAUSE() __builtin_ia32_pause()
#else
#define SF_GDA_PAUSE() ((void)0)
#endif

/* ------------------------------------------------------------------------
 * The device handle: a queue as its posters see it.
 */
#define SF_GDA_VERSION 1

/* Addresses are those of the posting domain (a GPU, or the process). */
struct sf_gda_qp {
	sf_u32 version; /* SF_GDA_VERSION */
	sf_u32 size;	/* bytes of this structure */
	sf_u32 qpn;
	sf_u32 polls; /* looks at the line before a post gives up */
	sf_u64 slots;
	sf_u32 log_depth;
	sf_u32 log_stride;
	sf_u64 line;	 /* struct sf_send_line */
	sf_u64 doorbell; /* struct sf_doorbell; 0: the device polls */
	sf_u64 reserved0[2];

	/* Written by posters. */
	sf_u64 next;   /* index that the next reservation gets */
	sf_u64 done;   /* the line's word as somebody saw it; may lag */
	sf_u64 poison; /* not 0: a reserved slot will never be filled */
	sf_u64 reserved1[5];
} __attribute__((aligned(64)));

SF_STATIC_ASSERT(sizeof(struct sf_gda_qp) == 128, "two lines");
SF_ASSERT_AT(struct sf_gda_qp, slots, 0x10);
SF_ASSERT_AT(struct sf_gda_qp, line, 0x20);
SF_ASSERT_AT(struct sf_gda_qp, next, 0x40);

/* Values of -errno on Linux. */
enum sf_gda_result {
	SF_GDA_AGAIN = -11,   /* not now, and nothing was reserved */
	SF_GDA_INVALID = -22, /* more slots than the queue has */
	SF_GDA_POISONED = -108,
	SF_GDA_TIMEDOUT = -110,
};

/*
 * Flags of a post: SF_WQE_SIGNALED, FENCE and so on (bits 15:0), these, and
 * SF_GDA_COUNT(id): count in counter @id when done.
 */
#define SF_GDA_EXCLUSIVE (1ULL << 16) /* no other thread posts meanwhile */
#define SF_GDA_TRY (1ULL << 17)	      /* SF_GDA_AGAIN instead of waiting */
#define SF_GDA_NO_RING (1ULL << 18)   /* somebody rings later */
#define SF_GDA_COUNT(id) ((sf_u64)(id) << 32 | SF_WQE_COUNTER)

/* Registered memory, local or remote. */
struct sf_gda_mem {
	sf_u64 addr;
	sf_u32 key;
};

/* A word at the target to be added to: a multiple of 8. */
struct sf_gda_signal {
	sf_u64 addr;
	sf_u32 key;
	int addend;
};

/* ------------------------------------------------------------------------
 * Inside
 */
struct sf_gda_quad {
	sf_u64 lo, hi;
} __attribute__((aligned(16), may_alias));

SF_INLINE void sf_gda_store16(SF_GDA_GLOBAL struct sf_wqe *slot, sf_u32 at,
			      sf_u64 lo, sf_u64 hi)
{
	struct sf_gda_quad v;

	v.lo = lo;
	v.hi = hi;
	*(SF_GDA_GLOBAL struct sf_gda_quad *)((SF_GDA_GLOBAL char *)slot + at) =
		v;
}

SF_INLINE sf_u64 sf_gda_pair(sf_u32 low, sf_u32 high)
{
	return low | (sf_u64)high << 32;
}

SF_INLINE SF_GDA_GLOBAL struct sf_wqe *
sf_gda_slot(SF_GDA_GLOBAL const struct sf_gda_qp *q, sf_u64 index)
{
	sf_u32 i = (sf_u32)index & ((1U << q->log_depth) - 1);

	return (SF_GDA_GLOBAL struct sf_wqe *)(q->slots +
					       ((sf_u64)i << q->log_stride));
}

SF_INLINE SF_GDA_GLOBAL struct sf_send_line *
sf_gda_line(SF_GDA_GLOBAL const struct sf_gda_qp *q)
{
	return (SF_GDA_GLOBAL struct sf_send_line *)q->line;
}

/* Does the ring hold all below @end when the line says @word? */
SF_INLINE int sf_gda_fits(SF_GDA_GLOBAL const struct sf_gda_qp *q, sf_u64 end,
			  sf_u64 word)
{
	return ((end - word) & SF_LINE_INDEX_MASK) <= 1U << q->log_depth;
}

/* Are all below @end done when the line says @word?  It has 56 bits. */
SF_INLINE int sf_gda_passed(sf_u64 end, sf_u64 word)
{
	return !((word - end) & 1ULL << 55);
}

/* The line says @word and not what was wanted: is there an error? */
SF_INLINE int sf_gda_broken(SF_GDA_GLOBAL struct sf_gda_qp *q, sf_u64 word)
{
	sf_u32 status;

	if (word & SF_LINE_ERROR) {
		status = SF_GDA_ATOMIC(load_n, &sf_gda_line(q)->status,
				       __ATOMIC_RELAXED);
		return status ? (int)status : SF_ST_WR_FLUSH_ERR;
	}
	return SF_GDA_ATOMIC(load_n, &q->poison, __ATOMIC_RELAXED) ?
		       SF_GDA_POISONED :
		       0;
}

/*
 * Waits until the ring has room for all below @end.  The stores to the slot
 * depend on the branch, so they come after the load.
 */
SF_INLINE int sf_gda_room(SF_GDA_GLOBAL struct sf_gda_qp *q, sf_u64 end,
			  sf_u32 polls)
{
	sf_u64 word = SF_GDA_ATOMIC(load_n, &q->done, __ATOMIC_RELAXED);
	int res;

	if (sf_gda_fits(q, end, word))
		return 0;
	for (;;) {
		word = SF_GDA_ATOMIC(load_n, &sf_gda_line(q)->word,
				     __ATOMIC_ACQUIRE);
		res = sf_gda_broken(q, word);
		if (res)
			return res;
		if (sf_gda_fits(q, end, word)) {
			SF_GDA_ATOMIC(store_n, &q->done, word,
				      __ATOMIC_RELAXED);
			return 0;
		}
		if (!polls--)
			return SF_GDA_TIMEDOUT;
		SF_GDA_PAUSE();
	}
}

/* ------------------------------------------------------------------------
 * Reserve
 */

/*
 * Reserves @n consecutive slots from *@index on and waits until they are free.
 *
 * 0: fill and post every one of them, in any order.
 * SF_GDA_TIMEDOUT: they are reserved all the same.  Either fill them later with
 * sf_gda_nops(), or sf_gda_poison() the queue: others wait behind them.
 * Otherwise nothing is reserved, or the queue is dead.
 * SF_GDA_TRY: one look, one compare-and-swap, SF_GDA_AGAIN.
 */
SF_INLINE int sf_gda_reserve(SF_GDA_GLOBAL struct sf_gda_qp *q, sf_u32 n,
			     sf_u64 flags, sf_u64 *index)
{
	sf_u64 at;
	int res;

	if (n != 1 && n > 1U << q->log_depth)
		return SF_GDA_INVALID;
	if (flags & SF_GDA_TRY) {
		at = SF_GDA_ATOMIC(load_n, &q->next, __ATOMIC_RELAXED);
		res = sf_gda_room(q, at + n, 0);
		*index = at;
		if (res)
			return res == SF_GDA_TIMEDOUT ? SF_GDA_AGAIN : res;
		if (flags & SF_GDA_EXCLUSIVE)
			q->next = at + n;
		else if (!SF_GDA_ATOMIC(compare_exchange_n, &q->next, &at,
					at + n, 0, __ATOMIC_RELAXED,
					__ATOMIC_RELAXED))
			return SF_GDA_AGAIN;
		return 0;
	}
	if (flags & SF_GDA_EXCLUSIVE) {
		at = q->next;
		q->next = at + n;
	} else {
		at = SF_GDA_ATOMIC(fetch_add, &q->next, (sf_u64)n,
				   __ATOMIC_RELAXED);
	}
	*index = at;
	return sf_gda_room(q, at + n, q->polls);
}

/* ------------------------------------------------------------------------
 * Fill: stores the body of @slot, which is reserved and free; returns the low
 * half of its commit word.
 */
SF_INLINE sf_u32 sf_gda_head(sf_u32 opcode, sf_u32 n_sge, sf_u64 flags)
{
	return opcode | n_sge << SF_COMMIT_NSGE_SHIFT |
	       (sf_u32)flags << SF_COMMIT_FLAGS_SHIFT;
}

/* What most requests have: target, counter, one piece of own memory. */
SF_INLINE sf_u32 sf_gda_fill(SF_GDA_GLOBAL struct sf_wqe *slot, sf_u32 opcode,
			     struct sf_gda_mem remote, sf_u32 imm,
			     struct sf_gda_mem own, sf_u32 bytes, sf_u64 flags)
{
	if (flags & SF_WQE_COUNTER)
		slot->counter_id = (sf_u16)(flags >> 32);
	sf_gda_store16(slot, 0x10, remote.addr, sf_gda_pair(remote.key, imm));
	sf_gda_store16(slot, SF_SLOT_DATA, own.addr,
		       sf_gda_pair(bytes, own.key));
	return sf_gda_head(opcode, 1, flags);
}

SF_INLINE sf_u32 sf_gda_fill_put(SF_GDA_GLOBAL struct sf_wqe *slot,
				 struct sf_gda_mem to, struct sf_gda_mem from,
				 sf_u32 bytes, sf_u64 flags)
{
	return sf_gda_fill(slot, SF_OP_WRITE, to, 0, from, bytes, flags);
}

SF_INLINE sf_u32 sf_gda_fill_put_signal(SF_GDA_GLOBAL struct sf_wqe *slot,
					struct sf_gda_mem to,
					struct sf_gda_mem from, sf_u32 bytes,
					struct sf_gda_signal signal,
					sf_u64 flags)
{
	sf_gda_store16(slot, SF_SLOT_ARGS, signal.addr,
		       sf_gda_pair(signal.key, (sf_u32)signal.addend));
	return sf_gda_fill(slot, SF_OP_WRITE, to, 0, from, bytes,
			   flags | SF_WQE_SIGNAL);
}

/* @data: four words, of which @bytes (at most 32) are sent. */
SF_INLINE sf_u32 sf_gda_fill_put_inline(SF_GDA_GLOBAL struct sf_wqe *slot,
					struct sf_gda_mem to,
					const sf_u64 *data, sf_u32 bytes,
					sf_u64 flags)
{
	slot->inline_len = (sf_u16)bytes;
	if (flags & SF_WQE_COUNTER)
		slot->counter_id = (sf_u16)(flags >> 32);
	sf_gda_store16(slot, 0x10, to.addr, to.key);
	sf_gda_store16(slot, SF_SLOT_DATA, data[0], data[1]);
	if (bytes > 16)
		sf_gda_store16(slot, SF_SLOT_DATA + 16, data[2], data[3]);
	return sf_gda_head(SF_OP_WRITE, 0, flags | SF_WQE_INLINE);
}

/* @own gets the 8 bytes that were there before; key 0: nobody wants them. */
SF_INLINE sf_u32 sf_gda_fill_atomic(SF_GDA_GLOBAL struct sf_wqe *slot,
				    sf_u32 opcode, struct sf_gda_mem remote,
				    sf_u64 arg0, sf_u64 arg1,
				    struct sf_gda_mem own, sf_u64 flags)
{
	sf_u32 head = sf_gda_fill(slot, opcode, remote, 0, own, 8, flags);

	sf_gda_store16(slot, SF_SLOT_ARGS, arg0, arg1);
	if (!own.key)
		head = sf_gda_head(opcode, 0, flags | SF_WQE_NOFETCH);
	return head;
}

/* ------------------------------------------------------------------------
 * Post
 */

/* "Look again": a hint, any value does.  One store. */
SF_INLINE void sf_gda_store_doorbell(sf_u64 doorbell, sf_u64 index)
{
	SF_GDA_GLOBAL struct sf_doorbell *cell =
		(SF_GDA_GLOBAL struct sf_doorbell *)doorbell;

	if (cell)
		SF_GDA_ATOMIC(store_n, &cell->value, index, __ATOMIC_RELAXED);
}

SF_INLINE void sf_gda_ring(SF_GDA_GLOBAL struct sf_gda_qp *q, sf_u64 index)
{
	sf_gda_store_doorbell(q->doorbell, index);
}

/* After SF_GDA_FENCE(): makes slot @index real, with what fill returned. */
SF_INLINE void sf_gda_commit(SF_GDA_GLOBAL struct sf_gda_qp *q, sf_u64 index,
			     sf_u32 head)
{
	SF_GDA_ATOMIC(store_n, &sf_gda_slot(q, index)->commit,
		      sf_gda_pair(head, sf_lap(index, q->log_depth)),
		      __ATOMIC_RELAXED);
}

/* One slot, that of @index: fence, commit, ring. */
SF_INLINE void sf_gda_post(SF_GDA_GLOBAL struct sf_gda_qp *q,
			   SF_GDA_GLOBAL struct sf_wqe *slot, sf_u64 index,
			   sf_u32 head, sf_u64 flags)
{
	sf_u64 word = sf_gda_pair(head, sf_lap(index, q->log_depth));
	sf_u64 doorbell = flags & SF_GDA_NO_RING ? 0 : q->doorbell;

	SF_GDA_FENCE();
	SF_GDA_ATOMIC(store_n, &slot->commit, word, __ATOMIC_RELAXED);
	sf_gda_store_doorbell(doorbell, index + 1);
}

/*
 * @n slots from @index on that were filled alike: one fence, one ring.  If
 * their heads differ: SF_GDA_FENCE(), sf_gda_commit() each, sf_gda_ring().
 */
SF_INLINE void sf_gda_post_batch(SF_GDA_GLOBAL struct sf_gda_qp *q,
				 sf_u64 index, sf_u32 n, sf_u32 head,
				 sf_u64 flags)
{
	sf_u32 i;

	SF_GDA_FENCE();
	for (i = 0; i < n; i++)
		sf_gda_commit(q, index + i, head);
	if (!(flags & SF_GDA_NO_RING))
		sf_gda_ring(q, index + n);
}

/*
 * Fills @n reserved slots with requests that do nothing: for who could not wait
 * for them, or has nothing to send after all.
 */
SF_INLINE int sf_gda_nops(SF_GDA_GLOBAL struct sf_gda_qp *q, sf_u64 index,
			  sf_u32 n, sf_u32 polls)
{
	int res = sf_gda_room(q, index + n, polls);

	if (!res)
		sf_gda_post_batch(q, index, n, sf_gda_head(SF_OP_NOP, 0, 0), 0);
	return res;
}

/* A reserved slot will never be filled: all waits end with SF_GDA_POISONED. */
SF_INLINE void sf_gda_poison(SF_GDA_GLOBAL struct sf_gda_qp *q)
{
	SF_GDA_ATOMIC(store_n, &q->poison, (sf_u64)1, __ATOMIC_RELAXED);
}

/* ------------------------------------------------------------------------
 * The same in one call: reserve, fill, post.  *@ticket is the index, for
 * sf_gda_wait(); for other results than 0 see sf_gda_reserve().
 */

/* Local to remote memory. */
SF_INLINE int sf_gda_put(SF_GDA_GLOBAL struct sf_gda_qp *q,
			 struct sf_gda_mem to, struct sf_gda_mem from,
			 sf_u32 bytes, sf_u64 flags, sf_u64 *ticket)
{
	SF_GDA_GLOBAL struct sf_wqe *slot;
	int res = sf_gda_reserve(q, 1, flags, ticket);

	if (res)
		return res;
	slot = sf_gda_slot(q, *ticket);
	sf_gda_post(q, slot, *ticket,
		    sf_gda_fill_put(slot, to, from, bytes, flags), flags);
	return 0;
}

/* ... which takes a receive there and makes its CQE, with @imm. */
SF_INLINE int sf_gda_put_imm(SF_GDA_GLOBAL struct sf_gda_qp *q,
			     struct sf_gda_mem to, struct sf_gda_mem from,
			     sf_u32 bytes, sf_u32 imm, sf_u64 flags,
			     sf_u64 *ticket)
{
	SF_GDA_GLOBAL struct sf_wqe *slot;
	int res = sf_gda_reserve(q, 1, flags, ticket);

	if (res)
		return res;
	slot = sf_gda_slot(q, *ticket);
	sf_gda_post(q, slot, *ticket,
		    sf_gda_fill(slot, SF_OP_WRITE_IMM, to, imm, from, bytes,
				flags),
		    flags);
	return 0;
}

/* ... out of registers: @bytes (1 to 32) of the four words @data. */
SF_INLINE int sf_gda_put_inline(SF_GDA_GLOBAL struct sf_gda_qp *q,
				struct sf_gda_mem to, const sf_u64 *data,
				sf_u32 bytes, sf_u64 flags, sf_u64 *ticket)
{
	SF_GDA_GLOBAL struct sf_wqe *slot;
	int res = sf_gda_reserve(q, 1, flags, ticket);

	if (res)
		return res;
	slot = sf_gda_slot(q, *ticket);
	sf_gda_post(q, slot, *ticket,
		    sf_gda_fill_put_inline(slot, to, data, bytes, flags),
		    flags);
	return 0;
}

/*
 * ... and then adds to a word there, once, after all earlier requests of this
 * queue are placed, too (SF_WQE_WEAK: after this one only).
 */
SF_INLINE int sf_gda_put_signal(SF_GDA_GLOBAL struct sf_gda_qp *q,
				struct sf_gda_mem to, struct sf_gda_mem from,
				sf_u32 bytes, struct sf_gda_signal signal,
				sf_u64 flags, sf_u64 *ticket)
{
	SF_GDA_GLOBAL struct sf_wqe *slot;
	int res = sf_gda_reserve(q, 1, flags, ticket);

	if (res)
		return res;
	slot = sf_gda_slot(q, *ticket);
	sf_gda_post(q, slot, *ticket,
		    sf_gda_fill_put_signal(slot, to, from, bytes, signal,
					   flags),
		    flags);
	return 0;
}

/* The signal alone: a put of nothing. */
SF_INLINE int sf_gda_signal(SF_GDA_GLOBAL struct sf_gda_qp *q,
			    struct sf_gda_signal signal, sf_u64 flags,
			    sf_u64 *ticket)
{
	struct sf_gda_mem none = {0, 0};

	return sf_gda_put_signal(q, none, none, 0, signal, flags, ticket);
}

/* Remote to local memory. */
SF_INLINE int sf_gda_get(SF_GDA_GLOBAL struct sf_gda_qp *q,
			 struct sf_gda_mem to, struct sf_gda_mem from,
			 sf_u32 bytes, sf_u64 flags, sf_u64 *ticket)
{
	SF_GDA_GLOBAL struct sf_wqe *slot;
	int res = sf_gda_reserve(q, 1, flags, ticket);

	if (res)
		return res;
	slot = sf_gda_slot(q, *ticket);
	sf_gda_post(q, slot, *ticket,
		    sf_gda_fill(slot, SF_OP_READ, from, 0, to, bytes, flags),
		    flags);
	return 0;
}

SF_INLINE int sf_gda_atomic(SF_GDA_GLOBAL struct sf_gda_qp *q, sf_u32 opcode,
			    struct sf_gda_mem remote, sf_u64 arg0, sf_u64 arg1,
			    struct sf_gda_mem own, sf_u64 flags, sf_u64 *ticket)
{
	SF_GDA_GLOBAL struct sf_wqe *slot;
	int res = sf_gda_reserve(q, 1, flags, ticket);

	if (res)
		return res;
	slot = sf_gda_slot(q, *ticket);
	sf_gda_post(q, slot, *ticket,
		    sf_gda_fill_atomic(slot, opcode, remote, arg0, arg1, own,
				       flags),
		    flags);
	return 0;
}

/* Adds to 8 bytes at @remote, a multiple of 8. */
SF_INLINE int sf_gda_add(SF_GDA_GLOBAL struct sf_gda_qp *q,
			 struct sf_gda_mem remote, sf_u64 addend, sf_u64 flags,
			 sf_u64 *ticket)
{
	struct sf_gda_mem none = {0, 0};

	return sf_gda_atomic(q, SF_OP_ATOMIC_FADD, remote, addend, 0, none,
			     flags, ticket);
}

/* ... and brings what was there before to @old, 8 bytes. */
SF_INLINE int sf_gda_fetch_add(SF_GDA_GLOBAL struct sf_gda_qp *q,
			       struct sf_gda_mem remote, sf_u64 addend,
			       struct sf_gda_mem old, sf_u64 flags,
			       sf_u64 *ticket)
{
	return sf_gda_atomic(q, SF_OP_ATOMIC_FADD, remote, addend, 0, old,
			     flags, ticket);
}

/* Stores @value at @remote if @expected is there; @old as above. */
SF_INLINE int sf_gda_cas(SF_GDA_GLOBAL struct sf_gda_qp *q,
			 struct sf_gda_mem remote, sf_u64 expected,
			 sf_u64 value, struct sf_gda_mem old, sf_u64 flags,
			 sf_u64 *ticket)
{
	return sf_gda_atomic(q, SF_OP_ATOMIC_CAS, remote, value, expected, old,
			     flags, ticket);
}

/* ------------------------------------------------------------------------
 * Warps and wavefronts: lanes 0 .. @lanes - 1 of one come here together, each
 * with the number @lane; @lanes is at most the width (32 or 64; 1 in C).
 * One reservation and one ring for all.  Between the two each lane fills slot
 * *@index of its own with any sf_gda_fill_...().
 */
SF_INLINE int sf_gda_reserve_lanes(SF_GDA_GLOBAL struct sf_gda_qp *q,
				   sf_u32 lane, sf_u32 lanes, sf_u64 flags,
				   sf_u64 *index)
{
	sf_u64 first = 0, res = 0;

	(void)lanes;
	if (!lane)
		res = (sf_u64)sf_gda_reserve(q, lanes, flags, &first);
	*index = SF_GDA_FIRST(lanes, first) + lane;
	return (int)SF_GDA_FIRST(lanes, res);
}

SF_INLINE void sf_gda_post_lanes(SF_GDA_GLOBAL struct sf_gda_qp *q, sf_u32 lane,
				 sf_u32 lanes, sf_u64 index, sf_u32 head,
				 sf_u64 flags)
{
	(void)lanes;
	sf_gda_post(q, sf_gda_slot(q, index), index, head,
		    flags | SF_GDA_NO_RING);
	index = SF_GDA_FIRST(lanes, index);
	if (!lane && !(flags & SF_GDA_NO_RING))
		sf_gda_ring(q, index + lanes);
}

/* A put by each lane. */
SF_INLINE int sf_gda_put_lanes(SF_GDA_GLOBAL struct sf_gda_qp *q, sf_u32 lane,
			       sf_u32 lanes, struct sf_gda_mem to,
			       struct sf_gda_mem from, sf_u32 bytes,
			       sf_u64 flags, sf_u64 *ticket)
{
	int res = sf_gda_reserve_lanes(q, lane, lanes, flags, ticket);

	if (!res)
		sf_gda_post_lanes(q, lane, lanes, *ticket,
				  sf_gda_fill_put(sf_gda_slot(q, *ticket), to,
						  from, bytes, flags),
				  flags);
	return res;
}

/* ------------------------------------------------------------------------
 * Wait.  @polls: looks after the first one; then SF_GDA_TIMEDOUT.
 */

/* Until request @ticket and all before it are done. */
SF_INLINE int sf_gda_wait(SF_GDA_GLOBAL struct sf_gda_qp *q, sf_u64 ticket,
			  sf_u32 polls)
{
	sf_u64 word;
	int res;

	for (;;) {
		word = SF_GDA_ATOMIC(load_n, &sf_gda_line(q)->word,
				     __ATOMIC_ACQUIRE);
		if (sf_gda_passed(ticket + 1, word))
			return 0;
		res = sf_gda_broken(q, word);
		if (res)
			return res;
		if (!polls--)
			return SF_GDA_TIMEDOUT;
		SF_GDA_PAUSE();
	}
}

/* One look: 0, SF_GDA_AGAIN or the error. */
SF_INLINE int sf_gda_test(SF_GDA_GLOBAL struct sf_gda_qp *q, sf_u64 ticket)
{
	int res = sf_gda_wait(q, ticket, 0);

	return res == SF_GDA_TIMEDOUT ? SF_GDA_AGAIN : res;
}

/* Until everything is done that anybody reserved before. */
SF_INLINE int sf_gda_quiet(SF_GDA_GLOBAL struct sf_gda_qp *q, sf_u32 polls)
{
	sf_u64 next = SF_GDA_ATOMIC(load_n, &q->next, __ATOMIC_RELAXED);

	return sf_gda_wait(q, next - 1, polls);
}

/*
 * Until local word @at, to which others add, has reached @value (it may wrap).
 * An error of @q, the queue to whom it may concern, ends the wait, too.
 */
SF_INLINE int sf_gda_wait_signal(SF_GDA_GLOBAL struct sf_gda_qp *q,
				 SF_GDA_GLOBAL sf_u64 *at, sf_u64 value,
				 sf_u32 polls)
{
	sf_u64 word;
	int res;

	for (;;) {
		word = SF_GDA_ATOMIC(load_n, at, __ATOMIC_ACQUIRE);
		if (!((word - value) >> 63))
			return 0;
		word = SF_GDA_ATOMIC(load_n, &sf_gda_line(q)->word,
				     __ATOMIC_ACQUIRE);
		res = sf_gda_broken(q, word);
		if (res)
			return res;
		if (!polls--)
			return SF_GDA_TIMEDOUT;
		SF_GDA_PAUSE();
	}
}

/* ... until it is not @old any more; *@value is what it is now. */
SF_INLINE int sf_gda_wait_change(SF_GDA_GLOBAL struct sf_gda_qp *q,
				 SF_GDA_GLOBAL sf_u64 *at, sf_u64 old,
				 sf_u32 polls, sf_u64 *value)
{
	sf_u64 word;
	int res;

	for (;;) {
		*value = SF_GDA_ATOMIC(load_n, at, __ATOMIC_ACQUIRE);
		if (*value != old)
			return 0;
		word = SF_GDA_ATOMIC(load_n, &sf_gda_line(q)->word,
				     __ATOMIC_ACQUIRE);
		res = sf_gda_broken(q, word);
		if (res)
			return res;
		if (!polls--)
			return SF_GDA_TIMEDOUT;
		SF_GDA_PAUSE();
	}
}

/*
 * Until @counter has counted @n successes.  Where it counts an error first:
 * SF_ST_GENERAL_ERR; which one, the queues that share it tell.
 */
SF_INLINE int sf_gda_wait_counter(SF_GDA_GLOBAL struct sf_counter *counter,
				  sf_u64 n, sf_u32 polls)
{
	for (;;) {
		sf_u64 errors = SF_GDA_ATOMIC(load_n, &counter->error,
					      __ATOMIC_ACQUIRE);

		if (SF_GDA_ATOMIC(load_n, &counter->success,
				  __ATOMIC_ACQUIRE) >= n)
			return 0;
		if (errors)
			return SF_ST_GENERAL_ERR;
		if (!polls--)
			return SF_GDA_TIMEDOUT;
		SF_GDA_PAUSE();
	}
}

#endif

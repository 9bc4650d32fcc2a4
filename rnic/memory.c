/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Registered memory: keys, lists of pieces, copies and atomics. */
#include "rnic/internal.h"

const struct rnic_mr *rnic_mr_check(const struct rnic *r, uint32_t key,
				    uint32_t pdn, uint64_t va, uint64_t len,
				    uint32_t access, uint32_t *syndrome)
{
	const struct rnic_mr *mr;
	uint32_t index = SF_KEY_INDEX(key);

	*syndrome = SF_SYN_KEY;
	if (unlikely(index >= RNIC_MAX_KEYS || !key))
		return NULL;
	mr = &r->sh->mr[index];
	if (unlikely(load_acquire(&mr->key) != key))
		return NULL;
	*syndrome = SF_SYN_PD;
	if (unlikely(mr->pdn != pdn))
		return NULL;
	*syndrome = SF_SYN_ACCESS;
	if (unlikely((mr->access & access) != access))
		return NULL;
	*syndrome = SF_SYN_BOUNDS;
	if (unlikely(va < mr->iova || va - mr->iova > mr->len ||
		     len > mr->len - (va - mr->iova)))
		return NULL;
	*syndrome = SF_SYN_NONE;
	return mr;
}

/* The longest stretch from byte @va of @mr that lies in one place. */
static struct rnic_ref mr_ref(const struct rnic_mr *mr, uint64_t va,
			      uint64_t len)
{
	uint64_t addr = va - mr->iova + mr->addr;
	struct rnic_ref ref = {addr, len, mr->space,
			       mr->access & RNIC_ON_DEMAND};
	uint32_t i, n = mr->nseg < RNIC_MR_SEGS ? mr->nseg : RNIC_MR_SEGS;

	for (i = 0; i < n; i++) {
		const struct rnic_mr_seg *seg = &mr->seg[i];

		if (addr < seg->va) {
			if (len > seg->va - addr)
				ref.len = seg->va - addr;
			return ref;
		}
		if (addr - seg->va < seg->len) {
			uint64_t in = addr - seg->va;

			ref.va = seg->off + in;
			ref.len = len < seg->len - in ? len : seg->len - in;
			ref.space = RNIC_SPACE_ARENA;
			ref.on_demand = 0;
			return ref;
		}
	}
	return ref;
}

/* A position in a list, and the contiguous piece that begins there. */
struct cursor {
	const struct rnic_sgl *sgl;
	uint32_t i;
	uint64_t off;
};

static void cursor_seek(struct cursor *c, const struct rnic_sgl *sgl,
			uint64_t off)
{
	c->sgl = sgl;
	c->i = 0;
	while (c->i < sgl->n && off >= sgl->v[c->i].len)
		off -= sgl->v[c->i++].len;
	c->off = off;
}

static struct rnic_ref cursor_ref(const struct cursor *c, uint64_t max)
{
	const struct rnic_sgl_entry *e = &c->sgl->v[c->i];
	uint64_t len = e->len - c->off;

	if (len > max)
		len = max;
	if (!e->mr)
		return (struct rnic_ref){e->va + c->off, len, RNIC_SPACE_RAW,
					 0};
	return mr_ref(e->mr, e->va + c->off, len);
}

static void cursor_advance(struct cursor *c, uint64_t len)
{
	c->off += len;
	while (c->i < c->sgl->n && c->off >= c->sgl->v[c->i].len)
		c->off -= c->sgl->v[c->i++].len;
}

/* A pointer in this process, or NULL if only the host can get there. */
static void *ref_pointer(const struct rnic *r, const struct rnic_ref *ref)
{
	if (ref->space == RNIC_SPACE_RAW)
		return (void *)(uintptr_t)ref->va;
	if (ref->space == RNIC_SPACE_ARENA &&
	    rnic_in_arena(r, ref->va, ref->len))
		return rnic_at(r, ref->va);
	return NULL;
}

/*
 * One store, as far as the size has one: a poller sees all of it or nothing.
 * All is read before anything is stored, see copy_local().
 */
static inline void store_tail(char *dst, const char *src, uint64_t len)
{
	uint64_t v8;
	uint32_t v4, w4;
	uint16_t v2, w2;

	if (len == 8) {
		memcpy(&v8, src, 8);
		memcpy(dst, &v8, 8);
	} else if (len >= 4) {
		memcpy(&v4, src, 4);
		memcpy(&w4, src + len - 4, 4);
		memcpy(dst, &v4, 4);
		memcpy(dst + len - 4, &w4, 4);
	} else if (len >= 2) {
		memcpy(&v2, src, 2);
		memcpy(&w2, src + len - 2, 2);
		memcpy(dst, &v2, 2);
		memcpy(dst + len - 2, &w2, 2);
	} else if (len) {
		*dst = *src;
	}
}

/* Source and target may overlap: an SGE can name the target itself. */
static void copy_local(char *dst, const char *src, uint64_t len)
{
	if (len > 8) {
		uint64_t tail;

		memcpy(&tail, src + len - 8, 8);
		memmove(dst, src, len - 8);
		__atomic_thread_fence(__ATOMIC_RELEASE);
		memcpy(dst + len - 8, &tail, 8);
	} else {
		store_tail(dst, src, len);
	}
}

static enum rnic_copy_result copy_ref(struct rnic *r,
				      const struct rnic_ref *dst,
				      const struct rnic_ref *src);

/* What a null region reads as, in pieces. */
static enum rnic_copy_result copy_zeroes(struct rnic *r, struct rnic_ref dst)
{
	static const char zeroes[16384];
	enum rnic_copy_result res = RNIC_COPY_OK;
	struct rnic_ref to = dst;
	struct rnic_ref from = {.va = (uintptr_t)zeroes,
				.space = RNIC_SPACE_RAW};

	for (; dst.len && !res; dst.va += to.len, dst.len -= to.len) {
		to.va = dst.va;
		to.len = dst.len < sizeof(zeroes) ? dst.len : sizeof(zeroes);
		from.len = to.len;
		res = copy_ref(r, &to, &from);
	}
	return res;
}

static enum rnic_copy_result copy_ref(struct rnic *r,
				      const struct rnic_ref *dst,
				      const struct rnic_ref *src)
{
	void *d = ref_pointer(r, dst);
	void *s = ref_pointer(r, src);

	if (likely(d && s)) {
		copy_local(d, s, src->len);
		return RNIC_COPY_OK;
	}
	if (dst->space == RNIC_SPACE_NULL)
		return RNIC_COPY_OK;
	if (src->space == RNIC_SPACE_NULL)
		return copy_zeroes(r, *dst);
	if (dst->space == RNIC_SPACE_ARENA && !d)
		return RNIC_FAULT_DST;
	if (src->space == RNIC_SPACE_ARENA && !s)
		return RNIC_FAULT_SRC;
	return r->ops->copy(r->host, dst, src);
}

enum rnic_copy_result rnic_sgl_copy(struct rnic *r, const struct rnic_sgl *dst,
				    uint64_t dst_off,
				    const struct rnic_sgl *src,
				    uint64_t src_off, uint64_t len)
{
	struct cursor d, s;

	if (!len)
		return RNIC_COPY_OK;
	cursor_seek(&d, dst, dst_off);
	cursor_seek(&s, src, src_off);
	while (len) {
		struct rnic_ref dr = cursor_ref(&d, len);
		struct rnic_ref sr = cursor_ref(&s, dr.len);
		enum rnic_copy_result res;

		dr.len = sr.len;
		res = copy_ref(r, &dr, &sr);
		if (unlikely(res))
			return res;
		len -= sr.len;
		if (!len)
			break;
		cursor_advance(&d, sr.len);
		cursor_advance(&s, sr.len);
	}
	return RNIC_COPY_OK;
}

/* ---- atomics -------------------------------------------------------- */

/*
 * Where an atomic works.  Aligned in the address space of the work request is
 * not aligned in memory if the region's iova says otherwise: then only the host
 * gets there.
 */
static struct rnic_ref atomic_ref(const struct rnic *r,
				  const struct rnic_mr *mr, uint64_t va)
{
	struct rnic_ref at = mr_ref(mr, va, 8);
	void *p = ref_pointer(r, &at);

	if (likely(p && at.len == 8 && !((uintptr_t)p & 7)))
		return at;
	return (struct rnic_ref){va - mr->iova + mr->addr, 8, mr->space,
				 mr->access & RNIC_ON_DEMAND};
}

/* Whichever way it fails, it is the target's memory. */
static enum rnic_copy_result atomic_read(struct rnic *r,
					 const struct rnic_ref *at, uint64_t *v)
{
	struct rnic_ref raw = {(uintptr_t)v, 8, RNIC_SPACE_RAW, 0};
	uint64_t *p = ref_pointer(r, at);

	if (likely(p)) {
		*v = load_acquire(p);
		return RNIC_COPY_OK;
	}
	return r->ops->copy(r->host, &raw, at) ? RNIC_FAULT_DST : RNIC_COPY_OK;
}

/* *@old to @v; where a CPU can do it, CPUs may interfere: then *@old is new. */
static enum rnic_copy_result atomic_write(struct rnic *r,
					  const struct rnic_ref *at,
					  uint64_t *old, uint64_t v)
{
	struct rnic_ref raw = {(uintptr_t)&v, 8, RNIC_SPACE_RAW, 0};
	uint64_t *p = ref_pointer(r, at);

	if (likely(p))
		return __atomic_compare_exchange_n(p, old, v, false,
						   __ATOMIC_SEQ_CST,
						   __ATOMIC_SEQ_CST) ?
			       RNIC_COPY_OK :
			       RNIC_COPY_BUSY;
	return r->ops->copy(r->host, at, &raw) ? RNIC_FAULT_DST : RNIC_COPY_OK;
}

static uint64_t atomic_result(enum rnic_atomic_op op, uint64_t old,
			      uint64_t arg, uint64_t compare)
{
	switch (op) {
	case RNIC_FADD:
		return old + arg;
	case RNIC_CAS:
		return old == compare ? arg : old;
	default:
		return arg;
	}
}

static enum rnic_copy_result
atomic_do(struct rnic *r, const struct rnic_ref *at, enum rnic_atomic_op op,
	  uint64_t arg, uint64_t compare, struct rnic_atomic_slot *slot)
{
	enum rnic_copy_result res;
	uint64_t old;

	res = atomic_read(r, at, &old);
	if (unlikely(res))
		return res;
	do {
		uint64_t v = atomic_result(op, old, arg, compare);

		slot->value = old;
		store_release(&slot->state, RNIC_ATOMIC_BEGUN);
		res = atomic_write(r, at, &old, v);
	} while (unlikely(res == RNIC_COPY_BUSY));
	store_release(&slot->state, res ? RNIC_ATOMIC_NONE : RNIC_ATOMIC_DONE);
	return res;
}

/*
 * The last holder died.  As long as nobody else could do an atomic here, what
 * is in memory tells whether his was done; if it changed nothing, it can be
 * done again.
 */
static void atomic_repair(struct rnic *r, struct rnic_atomic_lock *lock)
{
	struct rnic_atomic_slot *slot;
	uint64_t v;
	bool done;

	if (lock->slot && rnic_in_arena(r, lock->slot, sizeof(*slot))) {
		slot = rnic_at(r, lock->slot);
		done = !atomic_read(r, &lock->at, &v) && v != slot->value;
		if (slot->state == RNIC_ATOMIC_BEGUN)
			slot->state = done ? RNIC_ATOMIC_DONE :
					     RNIC_ATOMIC_NONE;
	}
	lock->slot = 0;
}

static bool atomic_lock(struct rnic *r, struct rnic_atomic_lock *lock)
{
	enum rnic_lock_result res = r->ops->lock(r->host, &lock->lock);

	if (unlikely(res == RNIC_LOCK_REPAIR))
		atomic_repair(r, lock);
	return res != RNIC_LOCK_BUSY;
}

static enum rnic_copy_result atomic_at(struct rnic *r, struct rnic_ref at,
				       enum rnic_atomic_op op, uint64_t arg,
				       uint64_t compare,
				       struct rnic_atomic_slot *slot)
{
	uint32_t hash = (uint32_t)(at.va >> 3) * 2654435761u ^ at.space;
	struct rnic_atomic_lock *lock;
	enum rnic_copy_result res;

	slot->lock = hash % RNIC_ATOMIC_LOCKS;
	lock = &r->sh->atomic_lock[slot->lock];
	if (!atomic_lock(r, lock))
		return RNIC_COPY_BUSY;
	lock->at = at;
	store_release(&lock->slot, (char *)slot - (char *)r->sh);
	res = atomic_do(r, &at, op, arg, compare, slot);
	lock->slot = 0;
	r->ops->unlock(r->host, &lock->lock);
	return res;
}

enum rnic_copy_result rnic_atomic(struct rnic *r, const struct rnic_mr *mr,
				  uint64_t va, enum rnic_atomic_op op,
				  uint64_t arg, uint64_t compare,
				  struct rnic_atomic_slot *slot)
{
	return atomic_at(r, atomic_ref(r, mr, va), op, arg, compare, slot);
}

enum rnic_copy_result rnic_atomic_arena(struct rnic *r, uint64_t off,
					uint64_t addend,
					struct rnic_atomic_slot *slot)
{
	struct rnic_ref at = {off, 8, RNIC_SPACE_ARENA, 0};

	return atomic_at(r, at, RNIC_FADD, addend, 0, slot);
}

void rnic_atomic_settle(struct rnic *r, const struct rnic_atomic_slot *slot)
{
	struct rnic_atomic_lock *lock =
		&r->sh->atomic_lock[slot->lock % RNIC_ATOMIC_LOCKS];

	/* Busy: then it has a holder who has seen to it. */
	if (atomic_lock(r, lock))
		r->ops->unlock(r->host, &lock->lock);
}

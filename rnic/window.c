/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Binding and invalidating memory windows (IBTA vol. 1, 10.6.7).
 *
 * A window whose key is 0 is closed.  It is changed under the bind lock of its
 * PD, after its key was taken away and every responder that may have found it
 * has left: nobody sees it half bound, and what was allowed before is over when
 * the request completes.  Whoever dies on the way leaves a closed window and a
 * WQE that is carried out again.
 */
#include "rnic/internal.h"

#define REMOTE_RIGHTS \
	(RNIC_REMOTE_WRITE | RNIC_REMOTE_READ | RNIC_REMOTE_ATOMIC)
/* Local write says nothing about a window; programs set it all the same. */
#define BIND_RIGHTS (REMOTE_RIGHTS | RNIC_LOCAL_WRITE | RNIC_ZERO_BASED)

static struct rnic_mr *window_get(const struct rnic *r,
				  const struct rnic_qp *qp, uint32_t key,
				  uint32_t *syndrome)
{
	uint32_t index = SF_KEY_INDEX(key);
	struct rnic_mr *w = &r->sh->mr[index % RNIC_MAX_KEYS];
	uint8_t kind = load_acquire(&w->kind);

	*syndrome = SF_SYN_KEY;
	if (index >= RNIC_MAX_KEYS || !w->live ||
	    (kind != RNIC_KEY_WINDOW_1 && kind != RNIC_KEY_WINDOW_2))
		return NULL;
	*syndrome = SF_SYN_PD;
	if (w->pdn != qp->init.pdn)
		return NULL;
	*syndrome = SF_SYN_NONE;
	return w;
}

/* ---- waiting for users ---------------------------------------------- */

static bool pass(struct rnic_call *call, struct rnic_qp *qp)
{
	if (rnic_call_crowded(call) || !rnic_responder_lock(call->r, qp))
		return false;
	rnic_responder_unlock(call, qp);
	return true;
}

/* Every responder that may have found the window valid has left. */
static bool drain(struct rnic_call *call, struct rnic_qp *qp,
		  const struct rnic_mr *w)
{
	struct rnic *r = call->r;
	uint32_t i;

	if (w->kind == RNIC_KEY_WINDOW_2)
		return pass(call, qp);
	for (i = 0; i < r->sh->qps.high; i++) {
		struct rnic_qp *user = &r->sh->qp[i];

		/* An XRC target acts on memory of any domain. */
		if (load_acquire(&user->qpn) &&
		    (user->init.pdn == w->pdn ||
		     user->init.type == RNIC_QPT_XRC_RECV) &&
		    !pass(call, user))
			return false;
	}
	return true;
}

/* ---- bind ----------------------------------------------------------- */

/*
 * What IBTA vol. 1, 10.6.7.2.1 to .3 ask for.  *@region: what it opens, NULL:
 * nothing.
 */
static uint32_t check_bind(const struct rnic *r, const struct rnic_qp *qp,
			   const struct rnic_mr *w, const struct rnic_bind *b,
			   bool begun, const struct rnic_mr **region)
{
	uint32_t access = RNIC_LKEY | RNIC_MW_BIND, syndrome;

	*region = NULL;
	if (b->access & ~BIND_RIGHTS)
		return SF_SYN_ACCESS;
	if (w->kind == RNIC_KEY_WINDOW_2) {
		if (load_relaxed(&w->key) && !begun)
			return SF_SYN_KEY;
		if (!b->len)
			return SF_SYN_LENGTH;
	} else if (b->access & RNIC_ZERO_BASED) {
		return SF_SYN_ACCESS;
	} else if (!b->len) {
		return SF_SYN_NONE;
	}
	if (b->access & (RNIC_REMOTE_WRITE | RNIC_REMOTE_ATOMIC))
		access |= RNIC_LOCAL_WRITE;
	*region = rnic_mr_check(r, b->lkey, qp->init.pdn, b->addr, b->len,
				access, &syndrome);
	return syndrome;
}

static void open_window(struct rnic_mr *w, const struct rnic_qp *qp,
			const struct rnic_mr *region, const struct rnic_bind *b)
{
	w->qpn = w->kind == RNIC_KEY_WINDOW_2 ? qp->qpn : 0;
	w->access = (b->access & (REMOTE_RIGHTS | RNIC_ZERO_BASED)) |
		    (region->access & RNIC_ON_DEMAND);
	w->parent = region->last_key;
	w->space = region->space;
	w->nseg = region->nseg;
	memcpy(w->seg, region->seg, sizeof(w->seg));
	w->iova = b->access & RNIC_ZERO_BASED ? 0 : b->addr;
	w->addr = b->addr - region->iova + region->addr;
	w->len = b->len;
	store_release(&w->key, b->key);
}

/* False: come again. */
static bool rebind(struct rnic_call *call, struct rnic_qp *qp,
		   struct rnic_mr *w, const struct rnic_mr *region,
		   const struct rnic_bind *b)
{
	struct rnic *r = call->r;
	struct rnic_lock *lock = &r->sh->pd[w->pdn % RNIC_MAX_PD].bind_lock;
	bool drained;

	/* There is nothing to repair: see above. */
	if (r->ops->lock(r->host, lock) == RNIC_LOCK_BUSY)
		return false;
	__atomic_store_n(&w->key, 0, __ATOMIC_SEQ_CST);
	drained = drain(call, qp, w);
	if (drained) {
		w->tag = SF_KEY_TAG(b->key);
		if (region)
			open_window(w, qp, region, b);
	}
	r->ops->unlock(r->host, lock);
	return drained;
}

uint32_t rnic_mw_bind(struct rnic_call *call, struct rnic_qp *qp,
		      const struct rnic_bind *b, uint64_t *begun,
		      uint64_t index)
{
	const struct rnic_mr *region;
	uint32_t syndrome;
	struct rnic_mr *w = window_get(call->r, qp, b->key, &syndrome);

	if (!w)
		return syndrome;
	syndrome = check_bind(call->r, qp, w, b, *begun == index, &region);
	if (syndrome)
		return syndrome;
	store_release(begun, index);
	return rebind(call, qp, w, region, b) ? SF_SYN_NONE : RNIC_BIND_LATER;
}

/* ---- invalidate ----------------------------------------------------- */

/*
 * Closes the window if @key is its key.  @begun: this was found right before,
 * now it may be closed already.
 */
static uint32_t invalidate(const struct rnic *r, const struct rnic_qp *qp,
			   uint32_t key, bool begun, bool close)
{
	uint32_t syndrome, current = key;
	struct rnic_mr *w = window_get(r, qp, key, &syndrome);

	if (!w)
		return syndrome;
	if (w->kind != RNIC_KEY_WINDOW_2)
		return SF_SYN_ACCESS;
	if (load_acquire(&w->key) != key || !key)
		return begun ? SF_SYN_NONE : SF_SYN_KEY;
	if (w->qpn != qp->qpn)
		return SF_SYN_ACCESS;
	if (close)
		__atomic_compare_exchange_n(&w->key, &current, 0, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	return SF_SYN_NONE;
}

uint32_t rnic_mw_invalidate(struct rnic_call *call, struct rnic_qp *qp,
			    uint32_t key, uint64_t *begun, uint64_t index)
{
	uint32_t syndrome =
		invalidate(call->r, qp, key, *begun == index, false);

	if (syndrome)
		return syndrome;
	store_release(begun, index);
	invalidate(call->r, qp, key, true, true);
	return pass(call, qp) ? SF_SYN_NONE : RNIC_BIND_LATER;
}

uint32_t rnic_mw_remote_invalidate(struct rnic *r, struct rnic_qp *qp,
				   uint32_t key, uint32_t psn)
{
	struct rnic_responder *resp = &qp->resp;
	bool begun = resp->inv_key == key && resp->inv_psn == psn;
	uint32_t syndrome = invalidate(r, qp, key, begun, false);

	if (syndrome)
		return syndrome;
	if (!begun) {
		/* The key last: with it, all of it counts. */
		store_release(&resp->inv_key, 0);
		resp->inv_psn = psn;
		store_release(&resp->inv_key, key);
	}
	return invalidate(r, qp, key, true, true);
}

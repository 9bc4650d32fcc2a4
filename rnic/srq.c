/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared receive queues (IBTA vol. 1, 10.2.9). */
#include "rnic/internal.h"

static uint64_t ring_off(const struct rnic_srq *srq)
{
	return srq->ring & ~(RNIC_PAGE - 1ull);
}

static uint32_t log_depth(const struct rnic_srq *srq)
{
	return srq->ring & (RNIC_PAGE - 1);
}

static void srq_event(struct rnic_call *call, const struct rnic_srq *srq,
		      uint32_t type)
{
	rnic_call_event(call, &(struct rnic_event){
				      .type = type,
				      .ctx = srq->ctx,
				      .number = srq - call->r->sh->srq,
				      .element = srq->user_handle,
			      });
}

/* The last holder died: a descriptor that its QP has in hand is taken. */
static void srq_repair(const struct rnic *r, struct rnic_srq *srq)
{
	const struct rnic_qp *qp = rnic_qp_get(r, srq->taker);

	if (qp && rnic_resp_srq(r, qp) == srq &&
	    load_acquire(&qp->resp.rq_head) != qp->resp.rq_done &&
	    qp->resp.rqe_index == srq->head)
		store_release(&srq->head, srq->head + 1);
}

static bool srq_lock(struct rnic *r, struct rnic_srq *srq)
{
	enum rnic_lock_result res = r->ops->lock(r->host, &srq->lock);

	if (unlikely(res == RNIC_LOCK_REPAIR))
		srq_repair(r, srq);
	return res != RNIC_LOCK_BUSY;
}

/* Disarms and raises if fewer are left than the limit; under the lock. */
static void check_limit(struct rnic_call *call, struct rnic_srq *srq)
{
	uint64_t posted;

	if (likely(!srq->limit))
		return;
	posted = rnic_recv_producer(call->r, srq->doorbell, srq->head);
	if (posted - srq->head >= srq->limit)
		return;
	store_release(&srq->pending, 1);
	store_release(&srq->limit, 0);
	srq_event(call, srq, RNIC_EVENT_SRQ_LIMIT_REACHED);
}

static enum rnic_take take(struct rnic_call *call, struct rnic_srq *srq,
			   struct rnic_qp *qp)
{
	struct rnic_recv_ring ring = {ring_off(srq), srq->doorbell, srq->head,
				      log_depth(srq), srq->log_stride};
	enum rnic_take res = srq->error ?
				     RNIC_TAKE_GARBAGE :
				     rnic_recv_peek(call->r, &qp->resp, &ring);

	if (unlikely(res == RNIC_TAKE_GARBAGE && !srq->error)) {
		store_release(&srq->error, 1 | RNIC_DUE);
		srq_event(call, srq, RNIC_EVENT_SRQ_ERR);
	}
	if (unlikely(res))
		return res;
	/* In this order, see srq_repair(). */
	store_release(&srq->taker, qp->qpn);
	store_release(&qp->resp.rq_head, qp->resp.rq_head + 1);
	store_release(&srq->head, srq->head + 1);
	check_limit(call, srq);
	return RNIC_TAKEN;
}

enum rnic_take rnic_srq_take(struct rnic_call *call, struct rnic_qp *qp)
{
	struct rnic *r = call->r;
	struct rnic_srq *srq = rnic_resp_srq(r, qp);
	enum rnic_take res;

	if (unlikely(!srq))
		return RNIC_TAKE_GARBAGE;
	if (unlikely(!srq_lock(r, srq)))
		return RNIC_TAKE_BUSY;
	res = take(call, srq, qp);
	r->ops->unlock(r->host, &srq->lock);
	return res;
}

void rnic_srq_wait(const struct rnic *r, struct rnic_qp *qp)
{
	struct rnic_srq *srq = rnic_resp_srq(r, qp);

	if (srq)
		__atomic_store_n(&srq->waiting, 1, __ATOMIC_SEQ_CST);
}

void rnic_srq_ring(struct rnic *r, uint32_t srqn)
{
	struct rnic_srq *srq = rnic_srq_get(r, srqn);
	struct rnic_call call;
	uint32_t i;

	if (unlikely(!srq))
		return;
	/* The producer index is out before the flag is read. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (likely(!load_relaxed(&srq->waiting)) ||
	    !__atomic_exchange_n(&srq->waiting, 0, __ATOMIC_SEQ_CST))
		return;
	rnic_call_begin(&call, r);
	call.bounded = true;
	for (i = 0; i < r->sh->qps.high && i < RNIC_MAX_QP; i++) {
		struct rnic_qp *qp = &r->sh->qp[i];

		if (!load_acquire(&qp->qpn) ||
		    load_relaxed(&qp->resp.srqn) != srqn)
			continue;
		rnic_wake_peer(&call, qp);
		rnic_call_end(&call);
	}
}

void rnic_srq_pass(struct rnic *r, uint32_t srqn)
{
	struct rnic_srq *srq = rnic_srq_get(r, srqn);

	if (srq && srq_lock(r, srq))
		r->ops->unlock(r->host, &srq->lock);
}

void rnic_srq_raise(struct rnic *r, const struct rnic_event *event)
{
	struct rnic_srq *srq = rnic_srq_get(r, event->number);
	bool locked;

	if (!srq)
		return;
	if (r->ops->event_soon)
		r->ops->event_soon(r->host, event);
	/* Busy means that its holder is stopped: rather late than never. */
	locked = srq_lock(r, srq);
	/* Else destroyed meanwhile: its owner knows the count. */
	if (load_acquire(&srq->live) && srq->ctx == event->ctx &&
	    srq->user_handle == event->element) {
		srq->async_events++;
		r->ops->event(r->host, event);
		if (event->type == RNIC_EVENT_SRQ_LIMIT_REACHED)
			store_release(&srq->pending, 0);
		else
			store_release(&srq->error, 1);
	}
	if (locked)
		r->ops->unlock(r->host, &srq->lock);
}

void rnic_srq_repair_events(struct rnic_call *call, uint32_t srqn)
{
	struct rnic *r = call->r;
	struct rnic_srq *srq = rnic_srq_get(r, srqn);

	if (!srq || !srq_lock(r, srq))
		return;
	if (load_acquire(&srq->error) & RNIC_DUE)
		srq_event(call, srq, RNIC_EVENT_SRQ_ERR);
	/* Disarmed by one who died: his event is due, told or not. */
	if (load_acquire(&srq->pending))
		srq_event(call, srq, RNIC_EVENT_SRQ_LIMIT_REACHED);
	else
		check_limit(call, srq);
	r->ops->unlock(r->host, &srq->lock);
}

/* ---- control -------------------------------------------------------- */

static bool srq_live(const struct rnic *r, uint32_t i)
{
	return i == 0 || r->sh->srq[i].live;
}

/* What it is made of stays as long as it does. */
static void use(struct rnic *r, const struct rnic_srq *srq, int32_t n)
{
	r->sh->pd[srq->pdn % RNIC_MAX_PD].users += n;
	if (!srq->xrcd)
		return;
	r->sh->xrcd[srq->xrcd % RNIC_MAX_XRCD].users += n;
	r->sh->cq[srq->cqn % RNIC_MAX_CQ].users += n;
}

static uint64_t ring_len(const struct rnic_srq *srq)
{
	return 1ull << (log_depth(srq) + srq->log_stride);
}

/* All but the lock: somebody may be late with the previous user's. */
static void clear(struct rnic *r, struct rnic_srq *srq)
{
	size_t after = offsetof(struct rnic_srq, lock) + sizeof(srq->lock);

	if (!srq->lock_made)
		r->ops->lock_init(r->host, &srq->lock);
	memset(srq, 0, offsetof(struct rnic_srq, lock));
	memset((char *)srq + after, 0, sizeof(*srq) - after);
	srq->lock_made = 1;
}

static bool attr_ok(const struct rnic *r, uint32_t ctx,
		    const struct rnic_srq_attr *attr)
{
	const struct rnic_pd *pd = &r->sh->pd[attr->pdn % RNIC_MAX_PD];
	const struct rnic_xrcd *xrcd = rnic_xrcd_get(r, ctx, attr->xrcd);
	const struct rnic_cq *cq = rnic_cq_get(r, attr->cqn);

	if (attr->xrcd && (!xrcd || !cq || cq->ctx != ctx))
		return false;
	return attr->dev < r->sh->devices && attr->pdn < RNIC_MAX_PD &&
	       pd->live && pd->ctx == ctx &&
	       attr->log_depth <= SF_MAX_LOG_DEPTH &&
	       attr->log_stride >= SF_RQ_LOG_MIN &&
	       attr->log_stride <= SF_RQ_LOG_MAX;
}

int rnic_srq_create(struct rnic *r, uint32_t ctx,
		    const struct rnic_srq_attr *attr, uint32_t *srqn,
		    struct rnic_srq_mem *mem)
{
	struct rnic_srq *srq;
	uint64_t ring, len;
	int err;

	if (!attr_ok(r, ctx, attr))
		return EINVAL;
	len = 1ull << (attr->log_depth + attr->log_stride);
	err = rnic_pool_take(r, &r->sh->srqs, RNIC_MAX_SRQ, srq_live, srqn);
	if (err)
		return err;
	srq = &r->sh->srq[*srqn];
	clear(r, srq);
	srq->ctx = ctx;
	srq->dev = attr->dev;
	srq->pdn = attr->pdn;
	srq->xrcd = attr->xrcd;
	srq->domain = attr->xrcd ? r->sh->xrcd[attr->xrcd].domain : 0;
	srq->cqn = attr->xrcd ? attr->cqn : 0;
	srq->log_stride = attr->log_stride;
	srq->user_handle = attr->user_handle;
	ring = r->ops->mem_alloc(r->host, len);
	srq->doorbell = r->ops->mem_alloc(r->host, RNIC_PAGE);
	if (!ring || !srq->doorbell)
		goto err_mem;
	srq->ring = ring + attr->log_depth;
	*mem = (struct rnic_srq_mem){ring, len, srq->doorbell, 0};
	use(r, srq, 1);
	store_release(&srq->live, 1);
	return 0;

err_mem:
	if (ring)
		r->ops->mem_free(r->host, ring, len);
	if (srq->doorbell)
		r->ops->mem_free(r->host, srq->doorbell, RNIC_PAGE);
	r->sh->srqs.used--;
	return ENOMEM;
}

static struct rnic_srq *srq_of(struct rnic *r, uint32_t ctx, uint32_t srqn)
{
	struct rnic_srq *srq = rnic_srq_get(r, srqn);

	return srq && srq->ctx == ctx ? srq : NULL;
}

int rnic_srq_set_limit(struct rnic *r, uint32_t ctx, uint32_t srqn,
		       uint32_t limit)
{
	struct rnic_srq *srq = srq_of(r, ctx, srqn);
	struct rnic_call call;

	if (!srq || limit > 1u << log_depth(srq))
		return EINVAL;
	if (!srq_lock(r, srq))
		return EBUSY;
	rnic_call_begin(&call, r);
	srq->limit = limit;
	check_limit(&call, srq);
	r->ops->unlock(r->host, &srq->lock);
	rnic_call_end(&call);
	return 0;
}

/* Descriptors have no lap: what was not posted needs no mark. */
static void move_posted(const struct rnic *r, const struct rnic_srq *srq,
			uint64_t producer, char *to, uint32_t to_log_depth)
{
	const char *from = rnic_at(r, ring_off(srq));
	uint64_t mask = (1ull << log_depth(srq)) - 1, i;
	uint64_t to_mask = (1ull << to_log_depth) - 1;

	for (i = srq->head; i != producer; i++)
		memcpy(to + ((i & to_mask) << srq->log_stride),
		       from + ((i & mask) << srq->log_stride),
		       1ull << srq->log_stride);
}

/* Under the lock; 0: the ring of @to is the SRQ's. */
static int resize(struct rnic *r, struct rnic_srq *srq, uint64_t to,
		  uint32_t to_log_depth)
{
	uint64_t producer = rnic_recv_producer(r, srq->doorbell, srq->head);
	uint64_t depth = 1ull << log_depth(srq), posted = producer - srq->head;

	if (srq->error || posted > depth || posted > 1ull << to_log_depth ||
	    srq->limit > 1ull << to_log_depth)
		return EINVAL;
	move_posted(r, srq, producer, rnic_at(r, to), to_log_depth);
	store_release(&srq->ring, to + to_log_depth);
	return 0;
}

int rnic_srq_resize(struct rnic *r, uint32_t ctx, uint32_t srqn,
		    uint32_t to_log_depth, struct rnic_srq_mem *mem)
{
	struct rnic_srq *srq = srq_of(r, ctx, srqn);
	uint64_t old, old_len, len;
	int err = EBUSY;

	if (!srq || to_log_depth > SF_MAX_LOG_DEPTH)
		return EINVAL;
	len = 1ull << (to_log_depth + srq->log_stride);
	mem->ring = r->ops->mem_alloc(r->host, len);
	if (!mem->ring)
		return ENOMEM;
	mem->ring_len = len;
	mem->doorbell = srq->doorbell;
	old = ring_off(srq);
	old_len = ring_len(srq);
	if (srq_lock(r, srq)) {
		err = resize(r, srq, mem->ring, to_log_depth);
		r->ops->unlock(r->host, &srq->lock);
	}
	if (err)
		r->ops->mem_free(r->host, mem->ring, len);
	else
		r->ops->mem_free(r->host, old, old_len);
	return err;
}

int rnic_srq_query(struct rnic *r, uint32_t ctx, uint32_t srqn,
		   struct rnic_srq_attr *attr)
{
	const struct rnic_srq *srq = srq_of(r, ctx, srqn);

	if (!srq)
		return EINVAL;
	*attr = (struct rnic_srq_attr){
		.dev = srq->dev,
		.pdn = srq->pdn,
		.log_depth = log_depth(srq),
		.log_stride = srq->log_stride,
		.limit = load_acquire(&srq->limit),
		.user_handle = srq->user_handle,
	};
	return 0;
}

int rnic_srq_destroy(struct rnic *r, uint32_t ctx, uint32_t srqn,
		     uint32_t *async_events)
{
	struct rnic_srq *srq = srq_of(r, ctx, srqn);

	if (!srq)
		return EINVAL;
	if (srq->users)
		return EBUSY;
	__atomic_store_n(&srq->live, 0, __ATOMIC_SEQ_CST);
	/* Who is just raising an event of it has then counted it. */
	if (srq_lock(r, srq))
		r->ops->unlock(r->host, &srq->lock);
	if (srq->xrcd && !rnic_xrc_forget_srq(r, srqn)) {
		store_release(&srq->live, 1);
		return EBUSY;
	}
	*async_events = load_acquire(&srq->async_events);
	r->ops->mem_free(r->host, ring_off(srq), ring_len(srq));
	r->ops->mem_free(r->host, srq->doorbell, RNIC_PAGE);
	use(r, srq, -1);
	r->sh->srqs.used--;
	return 0;
}

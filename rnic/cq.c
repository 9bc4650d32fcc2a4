/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Completion queues: the producer's side and the arming of events. */
#include "rnic/internal.h"

static struct sf_cqe *cq_slot(const struct rnic *r, const struct rnic_cq *cq,
			      uint64_t index)
{
	uint64_t off = rnic_cq_ring(cq) +
		       ((index & ((1ull << rnic_cq_log_depth(cq)) - 1)) << 6);

	return rnic_in_arena(r, off, sizeof(struct sf_cqe)) ? rnic_at(r, off) :
							      NULL;
}

static struct sf_cq_ctrl *cq_ctrl(const struct rnic *r,
				  const struct rnic_cq *cq)
{
	return rnic_in_arena(r, cq->ctrl, sizeof(struct sf_cq_ctrl)) ?
		       rnic_at(r, cq->ctrl) :
		       NULL;
}

static bool slot_written(const struct rnic_cq *cq, const struct sf_cqe *slot,
			 uint64_t index)
{
	return sf_cqe_lap(load_acquire(&slot->word)) ==
	       (sf_lap(index, rnic_cq_log_depth(cq)) & 0xff);
}

/* IBTA vol. 1, 11.4.2.2: errors wake those who wait for solicited ones, too. */
static bool is_solicited(uint64_t word)
{
	return sf_cqe_flags(word) & SF_CQE_SOLICITED || sf_cqe_status(word);
}

static void intent_clear(struct rnic_intent *intent, uint64_t cqe)
{
	if (intent->cqe == cqe)
		store_release(&intent->set, 0);
}

/* The last holder died: a CQE that is complete counts, another is not there. */
static void cq_repair(const struct rnic *r, struct rnic_cq *cq)
{
	struct sf_cqe *slot = cq_slot(r, cq, cq->producer);
	uint64_t intent = cq->intent;

	if (slot && slot_written(cq, slot, cq->producer)) {
		if (is_solicited(slot->word))
			cq->solicited = cq->producer + 1;
		store_release(&cq->producer, cq->producer + 1);
	} else if (intent &&
		   rnic_in_arena(r, intent, sizeof(struct rnic_intent))) {
		intent_clear(rnic_at(r, intent), cq->producer);
	}
	cq->intent = 0;
}

static bool cq_lock(struct rnic *r, struct rnic_cq *cq)
{
	enum rnic_lock_result res = r->ops->lock(r->host, &cq->lock);

	if (unlikely(res == RNIC_LOCK_REPAIR))
		cq_repair(r, cq);
	return res != RNIC_LOCK_BUSY;
}

/*
 * The index below which all CQEs have raised their event once this one is
 * raised, 0 for none.  One event stands for one CQE that is due, as on a card:
 * a program that arms, polls a part and waits again (perftest before 4.5-0.20)
 * is woken for the rest, and one that arms before it polls the one CQE that
 * woke it (ib_send_lat -e) is not woken for that one again.
 */
static uint64_t cq_arm_hit(const struct rnic_cq *cq, uint64_t armed)
{
	uint64_t index = armed & SF_CQ_INDEX_MASK;
	uint32_t mode = armed >> SF_CQ_ARM_SHIFT;
	uint64_t last;

	if (index < load_acquire(&cq->told))
		index = load_acquire(&cq->told);
	if (mode == SF_CQ_ARM_SOLICITED) {
		last = load_acquire(&cq->solicited);
		return last > index ? last : 0;
	}
	last = load_acquire(&cq->producer);
	return mode == SF_CQ_ARM_ANY && last > index ? index + 1 : 0;
}

static void cq_event(struct rnic_call *call, const struct rnic_cq *cq,
		     uint32_t type)
{
	rnic_call_event(call, &(struct rnic_event){
				      .type = type,
				      .ctx = cq->ctx,
				      .channel = cq->channel,
				      .number = cq - call->r->sh->cq,
				      .element = cq->user_handle,
			      });
}

static void timer_bit_set(struct rnic *r, const struct rnic_cq *cq)
{
	uint32_t i = cq - r->sh->cq;

	__atomic_fetch_or(&r->sh->cq_timer_bits[i / 64], 1ull << (i % 64),
			  __ATOMIC_SEQ_CST);
}

/*
 * Too few CQEs are due and it is too early: the timer will see to it.  Else
 * the event stands for all of them, and *@told says so.
 */
static bool hold_back(struct rnic *r, struct rnic_cq *cq, uint64_t armed,
		      uint32_t moderation, uint64_t *told)
{
	uint64_t index = armed & SF_CQ_INDEX_MASK, now, deadline = 0;
	uint64_t last = load_acquire(&cq->producer);

	if (index < load_acquire(&cq->told))
		index = load_acquire(&cq->told);
	if (armed >> SF_CQ_ARM_SHIFT == SF_CQ_ARM_ANY)
		*told = last;
	if (last - index >= (moderation & 0xffff))
		return false;
	now = r->ops->now(r->host);
	if (!__atomic_compare_exchange_n(
		    &cq->deadline, &deadline,
		    now + (moderation >> 16) * 1000ull, false,
		    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		return now < deadline;
	timer_bit_set(r, cq);
	r->ops->timer(r->host, now + (moderation >> 16) * 1000ull);
	return true;
}

/* Whoever takes the arm word away raises the event. */
static void cq_fire(struct rnic_call *call, struct rnic_cq *cq)
{
	uint64_t armed = __atomic_load_n(&cq->armed, __ATOMIC_SEQ_CST), told;
	uint32_t moderation;

	if (likely(!armed))
		return;
	told = cq_arm_hit(cq, armed);
	if (!told)
		return;
	moderation = load_relaxed(&cq->moderation);
	if (unlikely(moderation)) {
		if (hold_back(call->r, cq, armed, moderation, &told))
			return;
		/* Another's, perhaps: then that one gets a new one. */
		store_release(&cq->deadline, 0);
	}
	store_release(&cq->pending, 1);
	if (__atomic_compare_exchange_n(&cq->armed, &armed, 0, false,
					__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
		store_release(&cq->told, told);
		cq_event(call, cq, RNIC_EVENT_COMPLETION);
	}
}

void rnic_cq_raise(struct rnic *r, const struct rnic_event *event)
{
	struct rnic_cq *cq = rnic_cq_get(r, event->number);
	bool locked, there;

	if (!cq)
		return;
	if (r->ops->event_soon)
		r->ops->event_soon(r->host, event);
	/* Busy means that its holder is stopped: rather late than never. */
	locked = cq_lock(r, cq);
	/* Else destroyed meanwhile: its owner knows the counts and forgot it. */
	there = load_acquire(&cq->live) && cq->ctx == event->ctx &&
		cq->user_handle == event->element;
	if (there && event->type == RNIC_EVENT_CQ_ERR) {
		if (cq->error & RNIC_DUE) {
			cq->async_events++;
			r->ops->event(r->host, event);
			store_release(&cq->error, 1);
		}
	} else if (there) {
		if (event->channel) {
			cq->comp_events++;
			r->ops->event(r->host, event);
		}
		store_release(&cq->pending, 0);
	}
	if (locked)
		r->ops->unlock(r->host, &cq->lock);
}

static enum rnic_push_result cq_overrun(struct rnic_call *call,
					struct rnic_cq *cq)
{
	store_release(&cq->error, 1 | RNIC_DUE);
	call->r->ops->unlock(call->r->host, &cq->lock);
	cq_event(call, cq, RNIC_EVENT_CQ_ERR);
	return RNIC_PUSH_OVERRUN;
}

enum rnic_push_result rnic_cq_push(struct rnic_call *call, uint32_t cqn,
				   struct sf_cqe *cqe,
				   struct rnic_intent *intent)
{
	struct rnic *r = call->r;
	struct rnic_cq *cq = rnic_cq_get(r, cqn);
	struct sf_cq_ctrl *ctrl;
	struct sf_cqe *slot;
	uint64_t index;

	if (unlikely(!cq))
		return RNIC_PUSH_OVERRUN;
	if (unlikely(!cq_lock(r, cq)))
		return RNIC_PUSH_BUSY;
	index = cq->producer;
	ctrl = cq_ctrl(r, cq);
	slot = cq_slot(r, cq, index);
	if (unlikely(cq->error || !ctrl || !slot)) {
		r->ops->unlock(r->host, &cq->lock);
		return RNIC_PUSH_OVERRUN;
	}
	/* A consumer index above the producer is garbage: also > depth. */
	if (unlikely(index - load_acquire(&ctrl->consumer) >=
		     1ull << rnic_cq_log_depth(cq)))
		return cq_overrun(call, cq);

	cq->intent = (char *)intent - (char *)r->sh;
	intent->cqe = index;
	store_release(&intent->set, 1);
	if (cq->timestamps)
		cqe->timestamp = r->ops->now(r->host);
	cqe->word |= (uint64_t)(sf_lap(index, rnic_cq_log_depth(cq)) & 0xff)
		     << SF_CQE_LAP_SHIFT;
	memcpy(slot, cqe, offsetof(struct sf_cqe, word));
	store_release(&slot->word, cqe->word);
	if (is_solicited(cqe->word))
		cq->solicited = index + 1;
	store_release(&cq->producer, index + 1);
	cq->intent = 0;
	r->ops->unlock(r->host, &cq->lock);
	rnic_fence_after_unlock();
	cq_fire(call, cq);
	return RNIC_PUSHED;
}

bool rnic_cq_pushed(struct rnic *r, uint32_t cqn,
		    const struct rnic_intent *intent)
{
	struct rnic_cq *cq = rnic_cq_get(r, cqn);
	bool locked, yes;

	if (!load_acquire(&intent->set) || !cq)
		return false;
	/* Busy: then it has a holder who has seen to the intent. */
	locked = cq_lock(r, cq);
	yes = load_acquire(&intent->set) &&
	      intent->cqe < load_acquire(&cq->producer);
	if (locked)
		r->ops->unlock(r->host, &cq->lock);
	return yes;
}

void rnic_cq_arm(struct rnic *r, uint32_t cqn)
{
	struct rnic_cq *cq = rnic_cq_get(r, cqn);
	uint64_t arm, old, want;
	struct rnic_call call;
	struct sf_cq_ctrl *ctrl;

	if (!cq)
		return;
	ctrl = cq_ctrl(r, cq);
	if (!ctrl)
		return;
	rnic_call_begin(&call, r);
	arm = load_acquire(&ctrl->arm);
	old = load_acquire(&cq->armed);
	/* Who waits for any goes on doing so (IBTA vol. 1, 11.4.2.2). */
	do {
		want = arm;
		if (old >> SF_CQ_ARM_SHIFT == SF_CQ_ARM_ANY &&
		    arm >> SF_CQ_ARM_SHIFT == SF_CQ_ARM_SOLICITED)
			want = old;
	} while (!__atomic_compare_exchange_n(&cq->armed, &old, want, false,
					      __ATOMIC_SEQ_CST,
					      __ATOMIC_SEQ_CST));
	cq_fire(&call, cq);
	rnic_call_end(&call);
}

uint64_t rnic_cq_tick(struct rnic_call *call, uint32_t cqn, uint64_t now)
{
	struct rnic_cq *cq = rnic_cq_get(call->r, cqn);
	uint64_t deadline;

	if (!cq)
		return UINT64_MAX;
	deadline = load_acquire(&cq->deadline);
	if (deadline > now) {
		timer_bit_set(call->r, cq);
		return deadline;
	}
	cq_fire(call, cq);
	return UINT64_MAX;
}

void rnic_cq_repair_events(struct rnic_call *call, uint32_t cqn)
{
	struct rnic_cq *cq = rnic_cq_get(call->r, cqn);

	if (!cq)
		return;
	if (cq_lock(call->r, cq))
		call->r->ops->unlock(call->r->host, &cq->lock);
	if (load_acquire(&cq->error) & RNIC_DUE)
		cq_event(call, cq, RNIC_EVENT_CQ_ERR);
	/* Whoever was to set its timer may be dead: the next tick looks. */
	if (load_acquire(&cq->deadline)) {
		timer_bit_set(call->r, cq);
		call->r->ops->timer(call->r->host, load_acquire(&cq->deadline));
	}
	/* Disarmed by one who died: his event is due, told or not. */
	if (load_acquire(&cq->pending) && !load_acquire(&cq->armed))
		cq_event(call, cq, RNIC_EVENT_COMPLETION);
	else
		cq_fire(call, cq);
}

/* ---- control -------------------------------------------------------- */

static bool cq_live(const struct rnic *r, uint32_t i)
{
	return i == 0 || r->sh->cq[i].live; /* number 0 stays unused */
}

/* All but the lock: somebody may be late with the previous user's. */
static void clear(struct rnic *r, struct rnic_cq *cq)
{
	size_t after = offsetof(struct rnic_cq, lock) + sizeof(cq->lock);

	if (!cq->lock_made)
		r->ops->lock_init(r->host, &cq->lock);
	memset(cq, 0, offsetof(struct rnic_cq, lock));
	memset((char *)cq + after, 0, sizeof(*cq) - after);
	cq->lock_made = 1;
}

int rnic_cq_create(struct rnic *r, uint32_t ctx,
		   const struct rnic_cq_attr *attr, uint32_t *cqn,
		   struct rnic_cq_mem *mem)
{
	uint64_t len = 64ull << attr->log_depth;
	struct rnic_cq *cq;
	struct sf_cq_ctrl *ctrl;
	int err;

	if (attr->log_depth > SF_MAX_CQ_LOG_DEPTH ||
	    attr->dev >= r->sh->devices)
		return EINVAL;
	err = rnic_pool_take(r, &r->sh->cqs, RNIC_MAX_CQ, cq_live, cqn);
	if (err)
		return err;
	cq = &r->sh->cq[*cqn];
	clear(r, cq);
	mem->ring = r->ops->mem_alloc(r->host, len);
	cq->ctrl = r->ops->mem_alloc(r->host, RNIC_PAGE);
	if (!mem->ring || !cq->ctrl)
		goto err_mem;
	cq->ctx = ctx;
	cq->dev = attr->dev;
	cq->channel = attr->channel;
	cq->timestamps = attr->timestamps;
	cq->user_handle = attr->user_handle;
	cq->ring = mem->ring + attr->log_depth;
	cq->producer = 1ull << attr->log_depth;
	ctrl = rnic_at(r, cq->ctrl);
	ctrl->consumer = cq->producer;
	*mem = (struct rnic_cq_mem){mem->ring, len, cq->ctrl, cq->producer};
	store_release(&cq->live, 1);
	return 0;

err_mem:
	if (mem->ring)
		r->ops->mem_free(r->host, mem->ring, len);
	if (cq->ctrl)
		r->ops->mem_free(r->host, cq->ctrl, RNIC_PAGE);
	r->sh->cqs.used--;
	return ENOMEM;
}

/* Same index, lap of the new depth; all other slots read as not written. */
static void cq_move(const struct rnic *r, const struct rnic_cq *cq,
		    uint64_t consumer, char *ring, uint32_t log_depth)
{
	uint64_t depth = 1ull << log_depth, i;

	for (i = consumer; i < consumer + depth; i++) {
		struct sf_cqe *to =
			(struct sf_cqe *)(ring + ((i & (depth - 1)) << 6));
		uint64_t lap = sf_lap(i, log_depth);

		if (i < cq->producer)
			*to = *cq_slot(r, cq, i);
		else
			lap--;
		to->word &= ~(0xffull << SF_CQE_LAP_SHIFT);
		to->word |= (lap & 0xff) << SF_CQE_LAP_SHIFT;
	}
}

int rnic_cq_resize(struct rnic *r, uint32_t ctx, uint32_t cqn,
		   uint32_t log_depth, struct rnic_cq_mem *mem)
{
	struct rnic_cq *cq = rnic_cq_get(r, cqn);
	uint64_t len = 64ull << log_depth, old, old_len, consumer;
	struct sf_cq_ctrl *ctrl;
	int err = 0;

	if (!cq || cq->ctx != ctx || log_depth > SF_MAX_CQ_LOG_DEPTH)
		return EINVAL;
	mem->ring = r->ops->mem_alloc(r->host, len);
	if (!mem->ring)
		return ENOMEM;
	if (!cq_lock(r, cq)) {
		r->ops->mem_free(r->host, mem->ring, len);
		return EBUSY;
	}
	ctrl = cq_ctrl(r, cq);
	consumer = load_acquire(&ctrl->consumer);
	old = rnic_cq_ring(cq);
	old_len = 64ull << rnic_cq_log_depth(cq);
	if (cq->error || cq->producer - consumer > 1ull << log_depth ||
	    cq->producer - consumer > 1ull << rnic_cq_log_depth(cq)) {
		err = EINVAL;
		old = mem->ring;
		old_len = len;
	} else {
		cq_move(r, cq, consumer, rnic_at(r, mem->ring), log_depth);
		store_release(&cq->ring, mem->ring + log_depth);
	}
	r->ops->unlock(r->host, &cq->lock);
	r->ops->mem_free(r->host, old, old_len);
	mem->ring_len = len;
	mem->ctrl = cq->ctrl;
	mem->start = cq->producer;
	return err;
}

int rnic_cq_moderate(struct rnic *r, uint32_t ctx, uint32_t cqn, uint16_t count,
		     uint16_t period)
{
	struct rnic_cq *cq = rnic_cq_get(r, cqn);
	struct rnic_call call;

	if (!cq || cq->ctx != ctx)
		return EINVAL;
	store_release(&cq->moderation,
		      count && period ? (uint32_t)period << 16 | count : 0);
	/* What was held back by the old rule goes by the new one. */
	store_release(&cq->deadline, 0);
	rnic_call_begin(&call, r);
	cq_fire(&call, cq);
	rnic_call_end(&call);
	return 0;
}

int rnic_cq_destroy(struct rnic *r, uint32_t ctx, uint32_t cqn,
		    uint32_t *comp_events, uint32_t *async_events)
{
	struct rnic_cq *cq = rnic_cq_get(r, cqn);

	if (!cq || cq->ctx != ctx)
		return EINVAL;
	if (cq->users)
		return EBUSY;
	__atomic_store_n(&cq->live, 0, __ATOMIC_SEQ_CST);
	/* Who is just raising an event of it has then counted it. */
	if (cq_lock(r, cq))
		r->ops->unlock(r->host, &cq->lock);
	*comp_events = load_acquire(&cq->comp_events);
	*async_events = load_acquire(&cq->async_events);
	r->ops->mem_free(r->host, rnic_cq_ring(cq),
			 64ull << rnic_cq_log_depth(cq));
	r->ops->mem_free(r->host, cq->ctrl, RNIC_PAGE);
	r->sh->cqs.used--;
	return 0;
}

uint64_t rnic_cq_user_handle(const struct rnic *r, uint32_t cqn)
{
	const struct rnic_cq *cq = rnic_cq_get(r, cqn);

	return cq ? cq->user_handle : 0;
}

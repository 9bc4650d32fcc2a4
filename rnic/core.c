/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The arena's tables: format, attach, numbers, protection domains; entry points
 * of the data path; timers; counters.
 */
#include "rnic/internal.h"

/* ---- format and attach ---------------------------------------------- */

static void set_view(struct rnic *r, void *base, uint64_t size,
		     const struct rnic_host_ops *ops, void *host)
{
	*r = (struct rnic){
		.sh = base,
		.size = size,
		.mapped = ops->reach ? 0 : size,
		.ops = ops,
		.host = host,
		.links = {[RNIC_LINK_DIRECT] = &rnic_link_direct,
			  [RNIC_LINK_WIRE] = &rnic_link_direct},
	};
}

bool rnic_reach(const struct rnic *r, uint64_t end)
{
	uint64_t mapped;

	if (!r->ops->reach)
		return false;
	mapped = r->ops->reach(r->host, end);
	/* The view is this process's own; only its promise is const. */
	store_relaxed(&((struct rnic *)r)->mapped, mapped);
	return end <= mapped;
}

static void put_be64(uint8_t *to, uint64_t v)
{
	int i;

	for (i = 0; i < 8; i++)
		to[i] = v >> (56 - 8 * i);
}

static void init_port(struct rnic_port_info *p, const struct rnic_config *c,
		      uint64_t guid, uint32_t lid)
{
	bool ib = c->link_layer == RNIC_INFINIBAND;

	p->link_layer = c->link_layer;
	p->state = 4; /* active */
	p->mtu = c->mtu;
	p->max_mtu = RNIC_MTU_4096;
	p->guid = guid;
	if (!ib)
		return; /* GIDs come from the host's interface */
	p->lid = lid;
	p->sm_lid = 1;
	put_be64(p->gid[0], 0xfe80000000000000ull);
	put_be64(p->gid[0] + 8, guid);
	p->gids = 1;
}

static void init_device(struct rnic_device *d, const struct rnic_config *c,
			uint32_t index)
{
	char *name = d->info.name;
	size_t n = strnlen(c->name, sizeof(c->name) - 2);
	uint32_t port;

	memcpy(name, c->name, n);
	name[n] = '0' + index;
	d->info.ports = c->ports;
	d->info.node_guid = c->guid + index * 16;
	d->info.sys_image_guid = c->guid;
	for (port = 0; port < c->ports; port++)
		init_port(&d->port[port].info, c,
			  d->info.node_guid + 1 + port,
			  1 + index * c->ports + port);
}

int rnic_create(struct rnic *r, void *base, uint64_t size,
		const struct rnic_config *config,
		const struct rnic_host_ops *ops, void *host)
{
	uint32_t i;

	if (size < RNIC_ARENA_DYNAMIC || !config->devices ||
	    config->devices > RNIC_MAX_DEVICES || !config->ports ||
	    config->ports > RNIC_MAX_PORTS || config->mtu < RNIC_MTU_256 ||
	    config->mtu > RNIC_MTU_4096)
		return EINVAL;
	set_view(r, base, size, ops, host);
	r->sh->version = RNIC_STATE_VERSION;
	r->sh->size_of_state = sizeof(struct rnic_shared);
	r->sh->arena_size = size;
	r->sh->devices = config->devices;
	for (i = 0; i < config->devices; i++)
		init_device(&r->sh->device[i], config, i);
	for (i = 0; i < RNIC_ATOMIC_LOCKS; i++)
		ops->lock_init(host, &r->sh->atomic_lock[i].lock);
	store_release(&r->sh->magic, RNIC_MAGIC);
	return 0;
}

int rnic_attach(struct rnic *r, void *base, uint64_t size,
		const struct rnic_host_ops *ops, void *host)
{
	const struct rnic_shared *sh = base;

	if (size < RNIC_ARENA_DYNAMIC || load_acquire(&sh->magic) != RNIC_MAGIC ||
	    sh->version != RNIC_STATE_VERSION ||
	    sh->size_of_state != sizeof(*sh) || sh->arena_size != size)
		return EPROTO;
	set_view(r, base, size, ops, host);
	return 0;
}

int rnic_port_add_gid(struct rnic *r, uint32_t dev, uint32_t port,
		      const uint8_t gid[16])
{
	struct rnic_port_info *p;

	if (dev >= r->sh->devices || !port ||
	    port > r->sh->device[dev].info.ports)
		return EINVAL;
	p = &r->sh->device[dev].port[port - 1].info;
	if (p->gids >= RNIC_MAX_GIDS)
		return ENOSPC;
	memcpy(p->gid[p->gids], gid, 16);
	store_release(&p->gids, p->gids + 1);
	return 0;
}

/* ---- numbers -------------------------------------------------------- */

int rnic_pool_take(struct rnic *r, struct rnic_pool *pool, uint32_t size,
		   bool (*live)(const struct rnic *r, uint32_t i),
		   uint32_t *index)
{
	uint32_t i, at = pool->next % size;

	for (i = 0; i < size; i++, at = (at + 1) % size) {
		if (live(r, at))
			continue;
		*index = at;
		pool->next = (at + 1) % size;
		pool->used++;
		if (pool->high <= at)
			pool->high = at + 1;
		return 0;
	}
	return ENOMEM;
}

/* ---- protection domains --------------------------------------------- */

static bool pd_live(const struct rnic *r, uint32_t i)
{
	return i == 0 || r->sh->pd[i].live;
}

int rnic_pd_create(struct rnic *r, uint32_t ctx, uint32_t dev, uint32_t *pdn)
{
	struct rnic_pd *pd;
	int err;

	if (dev >= r->sh->devices)
		return EINVAL;
	err = rnic_pool_take(r, &r->sh->pds, RNIC_MAX_PD, pd_live, pdn);
	if (err)
		return err;
	pd = &r->sh->pd[*pdn];
	if (!pd->lock_made)
		r->ops->lock_init(r->host, &pd->bind_lock);
	pd->lock_made = 1;
	pd->ctx = ctx;
	pd->dev = dev;
	pd->users = 0;
	pd->windows = 0;
	pd->live = 1;
	return 0;
}

struct rnic_pd *rnic_pd_get(const struct rnic *r, uint32_t ctx, uint32_t pdn)
{
	struct rnic_pd *pd = &r->sh->pd[pdn % RNIC_MAX_PD];

	return pdn < RNIC_MAX_PD && pd->live && pd->ctx == ctx ? pd : NULL;
}

int rnic_pd_query(const struct rnic *r, uint32_t ctx, uint32_t pdn)
{
	return rnic_pd_get(r, ctx, pdn) ? 0 : EINVAL;
}

int rnic_pd_destroy(struct rnic *r, uint32_t ctx, uint32_t pdn)
{
	struct rnic_pd *pd = rnic_pd_get(r, ctx, pdn);

	if (!pd)
		return EINVAL;
	if (pd->users)
		return EBUSY;
	pd->live = 0;
	r->sh->pds.used--;
	return 0;
}

/* ---- waiting for users ------------------------------------------------ */

/*
 * Whoever found the region (or counter) valid holds a lock of a QP of its
 * protection domain: after each of them was ours for a moment, nobody uses it.
 */
bool rnic_pd_quiesce(struct rnic *r, uint32_t pdn)
{
	struct rnic_call call;
	bool quiet = true;
	uint32_t i;

	rnic_call_begin(&call, r);
	for (i = 0; quiet && i < r->sh->qps.high; i++) {
		struct rnic_qp *qp = &r->sh->qp[i];

		/* An XRC target goes from one to another. */
		if (!load_acquire(&qp->qpn) ||
		    (qp->init.pdn != pdn && qp->recv_pdn != pdn &&
		     qp->init.type != RNIC_QPT_XRC_RECV))
			continue;
		quiet = rnic_qp_pass(&call, qp);
		rnic_call_end(&call);
	}
	return quiet;
}

/* ---- counters ------------------------------------------------------- */

static bool counter_live(const struct rnic *r, uint32_t i)
{
	return i == 0 || r->sh->counter[i].live || r->sh->counter[i].memory;
}

int rnic_counter_create(struct rnic *r, uint32_t ctx, uint32_t pdn,
			uint32_t *id, uint64_t *mem)
{
	struct rnic_pd *pd = rnic_pd_get(r, ctx, pdn);
	struct rnic_counter *c;
	int err;

	if (!pd)
		return EINVAL;
	*mem = r->ops->mem_alloc(r->host, RNIC_PAGE);
	if (!*mem)
		return ENOMEM;
	err = rnic_pool_take(r, &r->sh->counters, RNIC_MAX_COUNTERS,
			     counter_live, id);
	if (err) {
		r->ops->mem_free(r->host, *mem, RNIC_PAGE);
		return err;
	}
	c = &r->sh->counter[*id];
	c->ctx = ctx;
	c->pdn = pdn;
	c->memory = *mem;
	pd->users++;
	store_release(&c->live, 1);
	return 0;
}

int rnic_counter_destroy(struct rnic *r, uint32_t ctx, uint32_t id)
{
	struct rnic_counter *c = &r->sh->counter[id % RNIC_MAX_COUNTERS];

	if (id >= RNIC_MAX_COUNTERS || !c->memory || c->ctx != ctx)
		return EINVAL;
	__atomic_store_n(&c->live, 0, __ATOMIC_SEQ_CST);
	if (!rnic_pd_quiesce(r, c->pdn))
		return EBUSY;
	r->ops->mem_free(r->host, c->memory, RNIC_PAGE);
	c->memory = 0;
	r->sh->pd[c->pdn % RNIC_MAX_PD].users--;
	r->sh->counters.used--;
	return 0;
}

/* ---- the end of a context ------------------------------------------- */

void rnic_ctx_fail(struct rnic *r, uint32_t ctx)
{
	struct rnic_call call;
	uint32_t i;

	rnic_call_begin(&call, r);
	for (i = 0; i < r->sh->qps.high; i++) {
		struct rnic_qp *qp = &r->sh->qp[i];

		if (!load_acquire(&qp->qpn) || qp->ctx != ctx)
			continue;
		rnic_qp_fail(&call, qp, RNIC_EVENT_NONE);
		rnic_call_end(&call);
	}
}

static bool leads_to(const struct rnic *r, const struct rnic_qp *qp,
		     uint32_t ctx)
{
	const struct rnic_qp *peer = rnic_qp_get(r, qp->attr.dest_qpn);

	return peer && peer->ctx == ctx && peer->init.dev == qp->peer_dev &&
	       peer->attr.dest_qpn == qp->qpn;
}

void rnic_ctx_orphan_peers(struct rnic *r, uint32_t ctx)
{
	struct rnic_call call;
	uint32_t i, state;

	rnic_call_begin(&call, r);
	for (i = 0; i < r->sh->qps.high; i++) {
		struct rnic_qp *qp = &r->sh->qp[i];

		state = load_acquire(&qp->state);
		if (!load_acquire(&qp->qpn) || qp->ctx == ctx ||
		    (state != RNIC_RTR && state != RNIC_RTS &&
		     state != RNIC_SQD) ||
		    !leads_to(r, qp, ctx))
			continue;
		if (!rnic_sq_idle(qp) && qp->attr.timeout)
			continue; /* its retries are being counted */
		rnic_qp_fail(&call, qp, RNIC_EVENT_NONE);
		rnic_call_end(&call);
	}
}

static int reap_qps(struct rnic *r, uint32_t ctx, bool wqs)
{
	int err = 0;
	uint32_t i, n;

	for (i = 0; i < r->sh->qps.high; i++) {
		struct rnic_qp *qp = &r->sh->qp[i];

		if (!qp->qpn || qp->ctx != ctx ||
		    (qp->init.type == RNIC_QPT_WQ) != wqs)
			continue;
		rnic_mcast_leave(r, qp);
		err |= rnic_qp_destroy(r, ctx, qp->qpn, &n);
	}
	return err;
}

/* Rules, what they steer to, tables, the work queues in them. */
static int reap_steered(struct rnic *r, uint32_t ctx)
{
	struct rnic_shared *sh = r->sh;
	int err = 0;
	uint32_t i;

	for (i = RNIC_MAX_FLOW - 1; sh->flows.used && i; i--)
		if (sh->flow[i].live && sh->flow[i].ctx == ctx)
			err |= rnic_flow_destroy(r, ctx, sh->flow[i].last);
	for (i = 0; i < sh->flow_counters.high; i++)
		if (sh->flow_count[i].live && sh->flow_count[i].ctx == ctx)
			err |= rnic_flow_counters_destroy(r, ctx, i);
	err |= reap_qps(r, ctx, false);
	for (i = 0; i < sh->wq_tables.high; i++)
		if (sh->wq_table[i].live && sh->wq_table[i].ctx == ctx)
			err |= rnic_wq_table_destroy(r, ctx, i);
	return err | reap_qps(r, ctx, true);
}

bool rnic_ctx_reap(struct rnic *r, uint32_t ctx)
{
	int err = reap_steered(r, ctx);
	uint32_t i, n;

	for (i = 0; i < r->sh->qp_refs.high; i++)
		if (r->sh->qp_ref[i].qpn && r->sh->qp_ref[i].ctx == ctx)
			err |= rnic_qp_destroy(r, ctx, RNIC_QP_REF | i, &n);
	for (i = 0; i < r->sh->ahs.high; i++)
		if (r->sh->ah[i].live && r->sh->ah[i].ctx == ctx)
			err |= rnic_ah_destroy(r, ctx, r->sh->ah[i].last);
	for (i = 0; i < r->sh->srqs.high; i++)
		if (r->sh->srq[i].live && r->sh->srq[i].ctx == ctx)
			err |= rnic_srq_destroy(r, ctx, i, &n);
	for (i = 0; i < r->sh->xrcds.high; i++)
		if (r->sh->xrcd[i].live && r->sh->xrcd[i].ctx == ctx)
			err |= rnic_xrcd_close(r, ctx, i);
	for (i = 0; i < r->sh->cqs.high; i++)
		if (r->sh->cq[i].live && r->sh->cq[i].ctx == ctx)
			err |= rnic_cq_destroy(r, ctx, i, &n, &n);
	err |= rnic_memory_reap(r, ctx);
	for (i = 0; i < r->sh->counters.high; i++)
		if (r->sh->counter[i].memory && r->sh->counter[i].ctx == ctx)
			err |= rnic_counter_destroy(r, ctx, i);
	for (i = 0; i < r->sh->pds.high; i++)
		if (r->sh->pd[i].live && r->sh->pd[i].ctx == ctx)
			err |= rnic_pd_destroy(r, ctx, i);
	return !err;
}

void rnic_repair(struct rnic *r)
{
	struct rnic_call call;
	uint32_t i;

	rnic_call_begin(&call, r);
	for (i = 0; i < r->sh->qps.high; i++) {
		struct rnic_qp *qp = &r->sh->qp[i];

		if (!load_acquire(&qp->qpn))
			continue;
		rnic_requester_kick(&call, qp, RNIC_MARK_RING);
		if (rnic_responder_lock(r, qp))
			rnic_responder_unlock(&call, qp);
		if (load_acquire(&qp->state) == RNIC_ERR)
			rnic_responder_kick(&call, qp);
		rnic_qp_repair_events(&call, qp);
		rnic_call_end(&call);
	}
	for (i = 0; i < r->sh->srqs.high; i++) {
		rnic_srq_repair_events(&call, i);
		rnic_call_end(&call);
	}
	for (i = 0; i < r->sh->cqs.high; i++) {
		rnic_cq_repair_events(&call, i);
		rnic_call_end(&call);
	}
}

/* ---- one call ------------------------------------------------------- */

void rnic_call_begin(struct rnic_call *call, struct rnic *r)
{
	call->r = r;
	call->bounded = r->bounded;
	call->events = 0;
	call->kicks = 0;
}

void rnic_call_event(struct rnic_call *call, const struct rnic_event *event)
{
	/* Never full: every loop stops at rnic_call_crowded(). */
	if (call->events < RNIC_CALL_EVENTS)
		call->event[call->events++] = *event;
}

void rnic_call_flush_qp(struct rnic_call *call, struct rnic_qp *qp)
{
	uint32_t i;

	for (i = 0; i < call->kicks; i++)
		if (call->kick[i] == qp->qpn)
			return;
	if (call->kicks < RNIC_CALL_KICKS)
		call->kick[call->kicks++] = qp->qpn;
}

static void raise(struct rnic_call *call, const struct rnic_event *event)
{
	struct rnic *r = call->r;

	switch (event->type) {
	case RNIC_EVENT_COMPLETION:
	case RNIC_EVENT_CQ_ERR:
		rnic_cq_raise(r, event);
		break;
	case RNIC_EVENT_QP_FATAL:
	case RNIC_EVENT_QP_REQ_ERR:
	case RNIC_EVENT_QP_ACCESS_ERR:
	case RNIC_EVENT_COMM_EST:
	case RNIC_EVENT_SQ_DRAINED:
	case RNIC_EVENT_QP_LAST_WQE_REACHED:
		rnic_qp_raise(call, event);
		break;
	case RNIC_EVENT_SRQ_ERR:
	case RNIC_EVENT_SRQ_LIMIT_REACHED:
		rnic_srq_raise(r, event);
		break;
	default:
		r->ops->event(r->host, event);
	}
}

void rnic_call_end(struct rnic_call *call)
{
	struct rnic *r = call->r;

	while (call->events || call->kicks) {
		struct rnic_qp *qp;

		if (call->events) {
			struct rnic_event event = call->event[0];

			memmove(call->event, call->event + 1,
				--call->events * sizeof(event));
			raise(call, &event);
			continue;
		}
		qp = rnic_qp_get(r, call->kick[--call->kicks]);
		if (!qp)
			continue;
		rnic_requester_kick(call, qp, RNIC_MARK_RING);
		rnic_responder_kick(call, qp);
	}
}

/* ---- data path entry ------------------------------------------------ */

void rnic_sq_ring(struct rnic *r, uint32_t qpn)
{
	struct rnic_qp *qp = rnic_qp_get(r, qpn);
	struct rnic_call call;

	if (unlikely(!qp))
		return;
	rnic_call_begin(&call, r);
	rnic_requester_kick(&call, qp, RNIC_MARK_RING);
	if (unlikely(call.events || call.kicks))
		rnic_call_end(&call);
}

void rnic_wake_peer(struct rnic_call *call, struct rnic_qp *qp)
{
	struct rnic_qp *peer;

	if (!__atomic_exchange_n(&qp->resp.rnr_waiter, 0, __ATOMIC_SEQ_CST))
		return;
	peer = rnic_qp_get(call->r, qp->attr.dest_qpn);
	if (peer)
		rnic_requester_kick(call, peer, RNIC_MARK_RNR_OVER);
}

void rnic_rq_ring(struct rnic *r, uint32_t qpn)
{
	struct rnic_qp *qp = rnic_qp_get(r, qpn);
	struct rnic_call call;

	if (unlikely(!qp))
		return;
	/* The producer index is out before the flag is read. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (likely(!load_relaxed(&qp->resp.rnr_waiter) &&
		   load_acquire(&qp->state) != RNIC_ERR))
		return;
	rnic_call_begin(&call, r);
	call.bounded = true;
	if (load_acquire(&qp->state) == RNIC_ERR)
		rnic_responder_kick(&call, qp);
	rnic_wake_peer(&call, qp);
	rnic_call_end(&call);
}

/* ---- timers --------------------------------------------------------- */

static void timer_bit_set(struct rnic *r, uint32_t i)
{
	__atomic_fetch_or(&r->sh->timer_bits[i / 64], 1ull << (i % 64),
			  __ATOMIC_SEQ_CST);
}

void rnic_timer_arm(struct rnic *r, struct rnic_qp *qp, uint64_t deadline)
{
	store_release(&qp->req.deadline, deadline);
	timer_bit_set(r, qp - r->sh->qp);
	r->ops->timer(r->host, deadline);
}

/* No lock is held: the deadline is not ours to write. */
void rnic_timer_soon(struct rnic *r, struct rnic_qp *qp)
{
	__atomic_fetch_or(&qp->req.mark, RNIC_MARK_RING, __ATOMIC_SEQ_CST);
	timer_bit_set(r, qp - r->sh->qp);
	r->ops->timer(r->host, r->ops->now(r->host));
}

static uint64_t tick_qp(struct rnic *r, uint32_t i, uint64_t now)
{
	struct rnic_qp *qp = &r->sh->qp[i];
	struct rnic_call call;
	uint64_t deadline;

	/* In this order: who arms it from now on finds the bit gone. */
	__atomic_fetch_and(&r->sh->timer_bits[i / 64], ~(1ull << (i % 64)),
			   __ATOMIC_SEQ_CST);
	deadline = load_acquire(&qp->req.deadline);
	if (!load_acquire(&qp->qpn))
		return UINT64_MAX;
	if (deadline > now) {
		timer_bit_set(r, i);
		if (!load_relaxed(&qp->req.mark))
			return deadline;
	}
	rnic_call_begin(&call, r);
	call.bounded = true;
	rnic_requester_kick(&call, qp, RNIC_MARK_RING);
	if (load_acquire(&qp->state) == RNIC_ERR)
		rnic_responder_kick(&call, qp);
	rnic_call_end(&call);
	/* Armed again meanwhile? */
	if (load_acquire(&r->sh->timer_bits[i / 64]) & 1ull << (i % 64))
		return load_acquire(&qp->req.deadline);
	return UINT64_MAX;
}

static uint64_t tick_cqs(struct rnic *r, uint64_t now)
{
	uint32_t w, words = (r->sh->cqs.high + 63) / 64;
	uint64_t next = UINT64_MAX;
	struct rnic_call call;

	rnic_call_begin(&call, r);
	call.bounded = true;
	for (w = 0; w < words && w < RNIC_MAX_CQ / 64; w++) {
		uint64_t bits = load_relaxed(&r->sh->cq_timer_bits[w]);

		if (likely(!bits))
			continue;
		/* In this order: who sets one from now on finds it gone. */
		bits = __atomic_exchange_n(&r->sh->cq_timer_bits[w], 0,
					   __ATOMIC_SEQ_CST);
		for (; bits; bits &= bits - 1) {
			uint32_t i = w * 64 + __builtin_ctzll(bits);
			uint64_t at = rnic_cq_tick(&call, i, now);

			if (at < next)
				next = at;
			rnic_call_end(&call);
		}
	}
	return next;
}

uint64_t rnic_tick(struct rnic *r, uint64_t now)
{
	uint64_t next = tick_cqs(r, now);
	uint32_t w, words = (r->sh->qps.high + 63) / 64;

	for (w = 0; w < words && w < RNIC_MAX_QP / 64; w++) {
		uint64_t bits = load_acquire(&r->sh->timer_bits[w]);

		while (bits) {
			uint32_t i = w * 64 + __builtin_ctzll(bits);
			uint64_t at = tick_qp(r, i, now);

			if (at < next)
				next = at;
			bits &= bits - 1;
		}
	}
	return next;
}

/* ---- what others look at -------------------------------------------- */

uint32_t rnic_devices(const struct rnic *r)
{
	return r->sh->devices;
}

int rnic_device_info(const struct rnic *r, uint32_t dev,
		     struct rnic_device_info *info)
{
	if (dev >= r->sh->devices)
		return EINVAL;
	*info = r->sh->device[dev].info;
	return 0;
}

int rnic_port_info(const struct rnic *r, uint32_t dev, uint32_t port,
		   struct rnic_port_info *info)
{
	if (dev >= r->sh->devices || !port ||
	    port > r->sh->device[dev].info.ports)
		return EINVAL;
	*info = r->sh->device[dev].port[port - 1].info;
	return 0;
}

void rnic_counters_add(struct rnic_counters *sum,
		       const struct rnic_counters *add)
{
#define X(name) sum->name += load_relaxed(&add->name);
	RNIC_COUNTERS(X)
#undef X
}

void rnic_port_counters(const struct rnic *r, uint32_t dev, uint32_t port,
			struct rnic_counters *sum)
{
	uint32_t i;

	memset(sum, 0, sizeof(*sum));
	if (dev >= r->sh->devices || !port ||
	    port > r->sh->device[dev].info.ports)
		return;
	*sum = r->sh->device[dev].port[port - 1].counters;
	for (i = 0; i < r->sh->qps.high && i < RNIC_MAX_QP; i++) {
		const struct rnic_qp *qp = &r->sh->qp[i];

		if (!load_acquire(&qp->qpn) || qp->init.dev != dev ||
		    qp->attr.port_num != port)
			continue;
		rnic_counters_add(sum, &qp->req.counters);
		rnic_counters_add(sum, &qp->resp.counters);
	}
}

static uint64_t doorbell_value(const struct rnic *r, uint64_t off)
{
	return rnic_in_arena(r, off, 8) ?
		       load_acquire((uint64_t *)rnic_at(r, off)) :
		       0;
}

bool rnic_qp_next(const struct rnic *r, uint32_t *it, struct rnic_qp_info *info)
{
	for (; *it < r->sh->qps.high && *it < RNIC_MAX_QP; ++*it) {
		const struct rnic_qp *qp = &r->sh->qp[*it];

		if (!load_acquire(&qp->qpn))
			continue;
		memset(info, 0, sizeof(*info));
		info->qpn = qp->qpn;
		info->ctx = qp->ctx;
		info->dev = qp->init.dev;
		info->type = qp->init.type;
		info->state = load_acquire(&qp->state);
		info->dest_qpn = qp->attr.dest_qpn;
		info->sq_head = qp->req.una[qp->req.una_sel & 1].index;
		info->rq_head = qp->resp.rq_head;
		info->sq_posted = doorbell_value(r, qp->sq_doorbell);
		info->rq_posted = doorbell_value(r, qp->rq_doorbell);
		rnic_counters_add(&info->counters, &qp->req.counters);
		rnic_counters_add(&info->counters, &qp->resp.counters);
		++*it;
		return true;
	}
	return false;
}

static void count_key(const struct rnic_shared *sh, const struct rnic_mr *mr,
		      uint32_t dev, struct rnic_objects *n)
{
	if (!mr->live ||
	    (dev != ~0u && sh->pd[mr->pdn % RNIC_MAX_PD].dev != dev))
		return;
	n->mrs += mr->kind == RNIC_KEY_REGION;
	n->mws += mr->kind != RNIC_KEY_REGION;
}

void rnic_count_objects(const struct rnic *r, uint32_t dev,
			struct rnic_objects *n)
{
	const struct rnic_shared *sh = r->sh;
	uint32_t i;

	memset(n, 0, sizeof(*n));
	for (i = 0; i < sh->pds.high && i < RNIC_MAX_PD; i++)
		n->pds += sh->pd[i].live && (dev == ~0u || sh->pd[i].dev == dev);
	for (i = 0; i < sh->keys.high && i < RNIC_MAX_KEYS; i++)
		count_key(sh, &sh->mr[i], dev, n);
	for (i = 0; i < sh->dms.high && i < RNIC_MAX_DM; i++)
		n->dms +=
			sh->dm[i].live && (dev == ~0u || sh->dm[i].dev == dev);
	for (i = 0; i < sh->cqs.high && i < RNIC_MAX_CQ; i++)
		n->cqs += sh->cq[i].live && (dev == ~0u || sh->cq[i].dev == dev);
	for (i = 0; i < sh->ahs.high && i < RNIC_MAX_AH; i++)
		n->ahs += sh->ah[i].live && (dev == ~0u || sh->ah[i].dev == dev);
	for (i = 0; i < sh->srqs.high && i < RNIC_MAX_SRQ; i++)
		n->srqs += sh->srq[i].live &&
			   (dev == ~0u || sh->srq[i].dev == dev);
	for (i = 0; i < sh->flows.high && i < RNIC_MAX_FLOW; i++)
		n->flows += sh->flow[i].live &&
			    (dev == ~0u || sh->flow[i].dev == dev);
	for (i = 0; i < sh->xrcds.high && i < RNIC_MAX_XRCD; i++)
		n->xrcds += sh->xrcd[i].live &&
			    (dev == ~0u || sh->xrcd[i].dev == dev);
	for (i = 0; i < sh->qps.high && i < RNIC_MAX_QP; i++)
		n->qps += sh->qp[i].qpn &&
			  (dev == ~0u || sh->qp[i].init.dev == dev);
}

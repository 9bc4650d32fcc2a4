/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rnic_fixture.h"

/* ---- locks ---------------------------------------------------------- */

enum {
	LOCK_HELD,
	LOCK_BUSY_LEFT,
	LOCK_DEAD,
	LOCK_READY
};

static int lock_rank(const struct fx_view *v, const struct rnic_lock *lock)
{
	const struct rnic_shared *sh = v->r.sh;
	const char *p = (const char *)lock;

	if (p >= (const char *)sh->qp) {
		size_t in =
			(size_t)(p - (const char *)sh->qp) % sizeof(*sh->qp);

		return in < offsetof(struct rnic_qp, resp) ? FX_RANK_REQ :
							     FX_RANK_RESP;
	}
	if (p >= (const char *)sh->srq)
		return FX_RANK_SRQ;
	if (p >= (const char *)sh->pd && p < (const char *)&sh->pd[RNIC_MAX_PD])
		return FX_RANK_BIND;
	return p >= (const char *)sh->cq ? FX_RANK_CQ : FX_RANK_ATOMIC;
}

void fx_lock_busy(struct rnic_lock *lock, unsigned int n)
{
	lock->opaque[LOCK_BUSY_LEFT] = n;
}

void fx_lock_dead(struct rnic_lock *lock)
{
	lock->opaque[LOCK_DEAD] = 1;
}

void fx_die(struct fx *fx)
{
	while (fx->helds) {
		struct rnic_lock *lock = fx->held[--fx->helds];

		lock->opaque[LOCK_HELD] = 0;
		fx_lock_dead(lock);
	}
}

static void op_lock_init(void *host, struct rnic_lock *lock)
{
	(void)host;
	memset(lock, 0, sizeof(*lock));
	lock->opaque[LOCK_READY] = 1;
}

static enum rnic_lock_result take(struct fx_view *v, struct rnic_lock *lock,
				  bool try)
{
	struct fx *fx = v->fx;
	int rank = lock_rank(v, lock);

	if (fx->lock_hook)
		fx->lock_hook(fx, lock, rank);
	assert_int_equal(lock->opaque[LOCK_READY], 1);
	if (lock->opaque[LOCK_BUSY_LEFT]) {
		lock->opaque[LOCK_BUSY_LEFT]--;
		return RNIC_LOCK_BUSY;
	}
	if (lock->opaque[LOCK_HELD]) {
		assert_true(try); /* else it would wait for itself */
		return RNIC_LOCK_BUSY;
	}
	/* One of each, in order. */
	if (fx->helds)
		assert_true(fx->held_rank[fx->helds - 1] < rank);
	assert_true(fx->helds < 8);
	fx->held[fx->helds] = lock;
	fx->held_rank[fx->helds++] = rank;
	fx->locks++;
	lock->opaque[LOCK_HELD] = 1;
	if (lock->opaque[LOCK_DEAD]) {
		lock->opaque[LOCK_DEAD] = 0;
		return RNIC_LOCK_REPAIR;
	}
	return RNIC_LOCKED;
}

static enum rnic_lock_result op_trylock(void *host, struct rnic_lock *lock)
{
	return take(host, lock, true);
}

static enum rnic_lock_result op_lock(void *host, struct rnic_lock *lock)
{
	return take(host, lock, false);
}

static void op_unlock(void *host, struct rnic_lock *lock)
{
	struct fx *fx = ((struct fx_view *)host)->fx;

	assert_true(fx->helds);
	assert_ptr_equal(fx->held[fx->helds - 1], lock);
	assert_int_equal(lock->opaque[LOCK_HELD], 1);
	fx->helds--;
	lock->opaque[LOCK_HELD] = 0;
}

/* ---- time, events --------------------------------------------------- */

static uint64_t op_now(void *host)
{
	return ((struct fx_view *)host)->fx->now;
}

static void op_timer(void *host, uint64_t deadline)
{
	struct fx *fx = ((struct fx_view *)host)->fx;

	fx->timers++;
	fx->armed = deadline;
	if (deadline < fx->deadline)
		fx->deadline = deadline;
}

static void op_event(void *host, const struct rnic_event *event)
{
	struct fx *fx = ((struct fx_view *)host)->fx;

	/* At most the lock under which it is counted. */
	assert_true(fx->helds <= 1);
	assert_true(fx->events < FX_MAX_EVENTS);
	fx->event[fx->events++] = *event;
}

static void run_timers(struct fx *fx)
{
	unsigned int i;

	for (i = 0; i < 1000 && fx->deadline <= fx->now; i++) {
		uint64_t next;

		fx->deadline = UINT64_MAX;
		next = rnic_tick(fx->r, fx->now);
		if (next < fx->deadline)
			fx->deadline = next;
	}
	assert_true(i < 1000);
}

void fx_advance(struct fx *fx, uint64_t ns)
{
	fx->now += ns;
	run_timers(fx);
}

bool fx_next_timer(struct fx *fx)
{
	if (fx->deadline == UINT64_MAX)
		return false;
	if (fx->now < fx->deadline)
		fx->now = fx->deadline;
	run_timers(fx);
	return true;
}

void fx_settle(struct fx *fx)
{
	int i;

	for (i = 0; i < 50 && fx_next_timer(fx); i++)
		;
}

/* ---- pages ---------------------------------------------------------- */

static bool range_free(const struct fx *fx, uint64_t off, uint64_t len,
		       uint64_t *next)
{
	unsigned int i;

	for (i = 0; i < fx->allocs; i++) {
		const struct fx_alloc *a = &fx->alloc[i];

		if (off < a->off + a->len && a->off < off + len) {
			*next = a->off + a->len;
			return false;
		}
	}
	return true;
}

static uint64_t pages_take(struct fx *fx, uint64_t len, int test)
{
	uint64_t off = RNIC_ARENA_DYNAMIC + RNIC_PAGE;

	len = (len + RNIC_PAGE - 1) & ~(uint64_t)(RNIC_PAGE - 1);
	while (!range_free(fx, off, len, &off))
		;
	assert_true(off + len <= FX_ARENA && fx->allocs < FX_MAX_ALLOCS);
	fx->alloc[fx->allocs++] = (struct fx_alloc){off, len, test};
	memset(rnic_at(fx->r, off), 0, len);
	return off;
}

static uint64_t op_mem_alloc(void *host, uint64_t len)
{
	struct fx *fx = ((struct fx_view *)host)->fx;

	if (!fx->allocs_left)
		return 0;
	if (fx->allocs_left > 0)
		fx->allocs_left--;
	return pages_take(fx, len, 0);
}

static void op_mem_free(void *host, uint64_t off, uint64_t len)
{
	struct fx *fx = ((struct fx_view *)host)->fx;
	unsigned int i;

	len = (len + RNIC_PAGE - 1) & ~(uint64_t)(RNIC_PAGE - 1);
	for (i = 0; i < fx->allocs && fx->alloc[i].off != off; i++)
		;
	assert_true(i < fx->allocs);
	assert_int_equal(fx->alloc[i].len, len);
	assert_int_equal(fx->alloc[i].test, 0);
	/* Who looks at it later finds nonsense. */
	memset(rnic_at(fx->r, off), 0xdb, len);
	fx->alloc[i] = fx->alloc[--fx->allocs];
}

uint64_t fx_pages(struct fx *fx, uint64_t len)
{
	return pages_take(fx, len, 1);
}

/* ---- the far address space ------------------------------------------ */

static char *far_pointer(struct fx_view *v, const struct rnic_ref *ref,
			 uint64_t len)
{
	struct fx *fx = v->fx;

	if (ref->space == RNIC_SPACE_RAW)
		return (char *)(uintptr_t)ref->va;
	if (ref->space == RNIC_SPACE_ARENA)
		return rnic_in_arena(&v->r, ref->va, len) ?
			       rnic_at(&v->r, ref->va) :
			       NULL;
	if (ref->space != FX_FAR || ref->va < FX_FAR_BASE ||
	    ref->va + len > FX_FAR_BASE + FX_FAR_SIZE)
		return NULL;
	if (fx->bad_len && ref->va < fx->bad_va + fx->bad_len &&
	    fx->bad_va < ref->va + len)
		return NULL;
	return fx->far + (ref->va - FX_FAR_BASE);
}

static enum rnic_copy_result op_copy(void *host, const struct rnic_ref *dst,
				     const struct rnic_ref *src)
{
	struct fx_view *v = host;
	uint64_t len = dst->len < src->len ? dst->len : src->len;
	char *d = far_pointer(v, dst, len);
	char *s = far_pointer(v, src, len);

	v->fx->copies++;
	if (!s)
		return RNIC_FAULT_SRC;
	if (!d)
		return RNIC_FAULT_DST;
	if (v->fx->copies_left && !--v->fx->copies_left)
		return RNIC_FAULT_DST;
	memmove(d, s, len);
	return RNIC_COPY_OK;
}

/* ---- open and close ------------------------------------------------- */

static void *map_arena(int fd)
{
	void *base = mmap(NULL, FX_ARENA, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_NORESERVE, fd, 0);

	assert_true(base != MAP_FAILED);
	return base;
}

void fx_open(struct fx *fx, uint32_t link_layer)
{
	struct rnic_config config = {
		.devices = 3,
		.ports = 2,
		.link_layer = link_layer,
		.mtu = RNIC_MTU_4096,
		.guid = 0x0200c0ffee000000ull,
		.name = "sf",
	};

	memset(fx, 0, sizeof(*fx));
	fx->ops = (struct rnic_host_ops){
		.now = op_now,
		.lock_init = op_lock_init,
		.trylock = op_trylock,
		.lock = op_lock,
		.unlock = op_unlock,
		.copy = op_copy,
		.event = op_event,
		.timer = op_timer,
		.mem_alloc = op_mem_alloc,
		.mem_free = op_mem_free,
	};
	fx->now = 1000000000;
	fx->deadline = UINT64_MAX;
	fx->allocs_left = -1;
	fx->view[0].fx = fx->view[1].fx = fx;
	fx->r = &fx->view[0].r;
	fx->fd = memfd_create("arena", 0);
	assert_true(fx->fd >= 0);
	assert_int_equal(ftruncate(fx->fd, FX_ARENA), 0);
	fx->far = calloc(1, FX_FAR_SIZE);
	assert_non_null(fx->far);
	assert_int_equal(rnic_create(fx->r, map_arena(fx->fd), FX_ARENA,
				     &config, &fx->ops, &fx->view[0]),
			 0);
}

void fx_second_view(struct fx *fx)
{
	assert_int_equal(rnic_attach(&fx->view[1].r, map_arena(fx->fd),
				     FX_ARENA, &fx->ops, &fx->view[1]),
			 0);
}

void fx_close(struct fx *fx)
{
	struct rnic_objects n;
	uint32_t i;

	for (i = 0; i < 16; i++)
		rnic_ctx_reap(fx->r, i);
	rnic_count_objects(fx->r, ~0u, &n);
	assert_int_equal(n.pds | n.mrs | n.mws | n.dms | n.ahs | n.cqs |
				 n.srqs | n.qps | n.flows | n.xrcds,
			 0);
	assert_int_equal(fx->helds, 0);
	for (i = 0; i < fx->allocs; i++)
		assert_int_equal(fx->alloc[i].test, 1);
	for (i = 0; i < 2; i++)
		if (fx->view[i].r.sh)
			munmap(fx->view[i].r.sh, FX_ARENA);
	close(fx->fd);
	free(fx->far);
}

/* ---- memory --------------------------------------------------------- */

void fx_fill(void *p, size_t len, uint32_t seed)
{
	uint8_t *b = p;
	size_t i;

	for (i = 0; i < len; i++) {
		seed = seed * 1664525u + 1013904223u;
		b[i] = seed >> 24;
	}
}

struct fx_mr fx_mr(struct fx_end *e, uint64_t len, uint32_t access)
{
	uint64_t off = fx_pages(e->fx, len);
	uint64_t addr = 0x123400000000ull + off;
	struct rnic_mr_attr attr = {
		.addr = addr,
		.len = len,
		.iova = addr,
		.access = access,
		.pdn = e->pdn,
		.space = FX_FAR,
		.nseg = 1,
		.seg = {{addr, len, off}},
	};
	struct fx_mr mr = {0, addr, rnic_at(e->fx->r, off), len};

	assert_int_equal(rnic_mr_create(e->r, e->ctx, &attr, &mr.key), 0);
	return mr;
}

struct fx_mr fx_mr_far(struct fx_end *e, uint64_t off, uint64_t len,
		       uint32_t access)
{
	struct rnic_mr_attr attr = {
		.addr = FX_FAR_BASE + off,
		.len = len,
		.iova = FX_FAR_BASE + off,
		.access = access,
		.pdn = e->pdn,
		.space = FX_FAR,
	};
	struct fx_mr mr = {0, attr.addr, (uint8_t *)e->fx->far + off, len};

	assert_int_equal(rnic_mr_create(e->r, e->ctx, &attr, &mr.key), 0);
	return mr;
}

/* ---- queues --------------------------------------------------------- */

const struct fx_opts fx_defaults = {
	.mtu = RNIC_MTU_1024,
	.sq_log_depth = 4,
	.sq_log_stride = 7,
	.rq_log_depth = 4,
	.rq_log_stride = 6,
	.cq_log_depth = 6,
	.psn = 0x1234,
	.access = FX_ALL_ACCESS & ~RNIC_LOCAL_WRITE,
	.timeout = 14,
	.retry_cnt = 7,
	.rnr_retry = 7,
	.min_rnr_timer = 12,
	.rd_atomic = 16,
};

void fx_cq_new(struct fx_cq *cq, struct rnic *r, uint32_t ctx, uint32_t dev,
	       uint32_t log_depth, uint32_t timestamps)
{
	struct rnic_cq_attr attr = {
		.dev = dev,
		.log_depth = log_depth,
		.channel = ctx + 100,
		.timestamps = timestamps,
		.user_handle = 0xc0000000ull + ctx,
	};

	memset(cq, 0, sizeof(*cq));
	cq->r = r;
	cq->log_depth = log_depth;
	assert_int_equal(rnic_cq_create(r, ctx, &attr, &cq->cqn, &cq->mem), 0);
	cq->consumer = cq->mem.start;
}

void fx_xsrq_new(struct fx_srq *srq, struct fx *fx, uint32_t ctx, uint32_t dev,
		 uint32_t pdn, uint32_t log_depth, uint32_t xrcd,
		 const struct fx_cq *cq)
{
	memset(srq, 0, sizeof(*srq));
	srq->fx = fx;
	srq->r = fx->r;
	srq->ctx = ctx;
	srq->attr = (struct rnic_srq_attr){
		.dev = dev,
		.pdn = pdn,
		.log_depth = log_depth,
		.log_stride = 6,
		.xrcd = xrcd,
		.cqn = cq ? cq->cqn : 0,
		.user_handle = SRQ_HANDLE(srq),
	};
	assert_int_equal(rnic_srq_create(srq->r, ctx, &srq->attr, &srq->srqn,
					 &srq->mem),
			 0);
	srq->next = srq->mem.start;
}

void fx_srq_new(struct fx_srq *srq, struct fx *fx, uint32_t ctx, uint32_t dev,
		uint32_t pdn, uint32_t log_depth)
{
	fx_xsrq_new(srq, fx, ctx, dev, pdn, log_depth, 0, NULL);
}

struct rnic_srq *fx_srq_state(const struct fx_srq *srq)
{
	return &srq->r->sh->srq[srq->srqn];
}

void fx_srq_recv(struct fx_srq *srq, uint32_t cookie, const struct fx_mr *mr,
		 uint64_t off, uint32_t len)
{
	uint64_t slot = srq->next & ((1ull << srq->attr.log_depth) - 1);
	struct sf_rq_desc *desc =
		rnic_at(srq->r, srq->mem.ring + (slot << srq->attr.log_stride));
	struct sf_doorbell *db = rnic_at(srq->r, srq->mem.doorbell);

	memset(desc, 0xa5, 1u << srq->attr.log_stride);
	desc->cookie = cookie;
	desc->n_sge = 1;
	*(struct sf_sge *)(desc + 1) = fx_sge(mr, off, len);
	srq->next++;
	__atomic_store_n(&db->value, srq->next, __ATOMIC_RELEASE);
	rnic_srq_ring(srq->r, srq->srqn);
}

static void create_qp(struct fx_end *e)
{
	assert_int_equal(
		rnic_qp_create(e->r, e->ctx, &e->init, &e->qpn, &e->mem), 0);
}

void fx_target_new(struct fx_end *e, struct fx *fx, struct rnic *r,
		   uint32_t ctx, uint32_t dev, uint32_t xrcd)
{
	memset(e, 0, sizeof(*e));
	e->fx = fx;
	e->r = r;
	e->ctx = ctx;
	e->init = (struct rnic_qp_init){
		.dev = dev,
		.type = RNIC_QPT_XRC_RECV,
		.xrcd = xrcd,
		.user_handle = END_HANDLE(e),
	};
	create_qp(e);
}

void fx_end_new(struct fx_end *e, struct fx *fx, struct rnic *r, uint32_t ctx,
		uint32_t dev, const struct fx_opts *o)
{
	memset(e, 0, sizeof(*e));
	e->fx = fx;
	e->r = r;
	e->ctx = ctx;
	assert_int_equal(rnic_pd_create(r, ctx, dev, &e->pdn), 0);
	fx_cq_new(&e->scq, r, ctx, dev, o->cq_log_depth, o->timestamps);
	fx_cq_new(&e->rcq, r, ctx, dev, o->cq_log_depth, o->timestamps);
	e->init = (struct rnic_qp_init){
		.dev = dev,
		.type = o->type ? o->type : RNIC_QPT_RC,
		.pdn = e->pdn,
		.send_cqn = e->scq.cqn,
		.recv_cqn = e->rcq.cqn,
		.srqn = o->srqn,
		.sq_sig_all = o->sig_all,
		.inline_recv = o->inline_recv,
		.space = FX_FAR,
		.sq_log_depth = o->sq_log_depth,
		.sq_log_stride = o->sq_log_stride,
		.rq_log_depth = o->srqn ? 0 : o->rq_log_depth,
		.rq_log_stride = o->srqn ? 0 : o->rq_log_stride,
		.cap = {16, 16, 4, 3, 64},
		.user_handle = END_HANDLE(e),
	};
	if (e->init.type == RNIC_QPT_XRC_SEND)
		e->init.recv_cqn = e->init.rq_log_depth =
			e->init.rq_log_stride = 0;
	create_qp(e);
	e->sq_next = e->mem.sq_start;
	e->rq_next = e->mem.rq_start;
}

static void path_to(const struct fx_end *peer, struct rnic_av *av)
{
	struct rnic_port_info port;

	assert_int_equal(rnic_port_info(peer->r, peer->init.dev, 1, &port), 0);
	av->port_num = 1;
	if (port.link_layer == RNIC_INFINIBAND) {
		av->dlid = port.lid;
		return;
	}
	av->is_global = 1;
	memcpy(av->dgid, port.gid[0], 16);
}

uint32_t fx_attr(const struct fx_end *e, const struct fx_end *peer,
		 uint32_t state, const struct fx_opts *o, uint32_t psn,
		 uint32_t peer_psn, struct rnic_qp_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->state = state;
	attr->port_num = 1;
	attr->access = o->access;
	attr->path_mtu = o->mtu;
	attr->dest_qpn = peer->qpn;
	attr->rq_psn = peer_psn;
	attr->sq_psn = psn;
	attr->max_rd_atomic = attr->max_dest_rd_atomic = o->rd_atomic;
	attr->min_rnr_timer = o->min_rnr_timer;
	attr->timeout = o->timeout;
	attr->retry_cnt = o->retry_cnt;
	attr->rnr_retry = o->rnr_retry;
	path_to(peer, &attr->av);
	attr->qkey = FX_QKEY;
	if (e->init.type == RNIC_QPT_RAW_PACKET)
		return RNIC_QP_STATE | (state == RNIC_INIT ? RNIC_QP_PORT : 0);
	if (e->init.type == RNIC_QPT_UD)
		return RNIC_QP_STATE |
		       (state == RNIC_INIT ? RNIC_QP_PKEY_INDEX | RNIC_QP_PORT |
						     RNIC_QP_QKEY :
			state == RNIC_RTS ? RNIC_QP_SQ_PSN :
					    0);
	if (e->init.type == RNIC_QPT_UC && state == RNIC_RTR)
		return RNIC_QP_STATE | RNIC_QP_AV | RNIC_QP_PATH_MTU |
		       RNIC_QP_DEST_QPN | RNIC_QP_RQ_PSN;
	if (e->init.type == RNIC_QPT_UC && state == RNIC_RTS)
		return RNIC_QP_STATE | RNIC_QP_SQ_PSN;
	switch (state) {
	case RNIC_INIT:
		return RNIC_QP_STATE | RNIC_QP_PKEY_INDEX | RNIC_QP_PORT |
		       RNIC_QP_ACCESS;
	case RNIC_RTR:
		return RNIC_QP_STATE | RNIC_QP_AV | RNIC_QP_PATH_MTU |
		       RNIC_QP_DEST_QPN | RNIC_QP_RQ_PSN |
		       RNIC_QP_MAX_DEST_RD_ATOMIC | RNIC_QP_MIN_RNR_TIMER;
	case RNIC_RTS:
		return RNIC_QP_STATE | RNIC_QP_TIMEOUT | RNIC_QP_RETRY_CNT |
		       RNIC_QP_RNR_RETRY | RNIC_QP_SQ_PSN |
		       RNIC_QP_MAX_RD_ATOMIC;
	default:
		return RNIC_QP_STATE;
	}
}

uint32_t fx_ah(struct fx_end *e, const struct fx_end *peer, bool global)
{
	struct rnic_port_info port;
	struct rnic_av av = {0};
	uint32_t ah;

	path_to(peer, &av);
	if (global) {
		assert_int_equal(
			rnic_port_info(peer->r, peer->init.dev, 1, &port), 0);
		av.is_global = 1;
		memcpy(av.dgid, port.gid[0], 16);
		av.hop_limit = 9;
		av.traffic_class = 0x5a;
		av.flow_label = 0x12345;
	}
	assert_int_equal(
		rnic_ah_create(e->r, e->ctx, e->init.dev, e->pdn, &av, &ah), 0);
	return ah;
}

void fx_connect(struct fx_end *e, const struct fx_end *peer, uint32_t state,
		const struct fx_opts *o, uint32_t psn, uint32_t peer_psn)
{
	struct rnic_qp_attr attr;
	uint32_t s, mask;

	for (s = RNIC_INIT; s <= state; s++) {
		mask = fx_attr(e, peer, s, o, psn, peer_psn, &attr);
		assert_int_equal(rnic_qp_modify(e->r, e->ctx, e->mem.handle,
						&attr, mask),
				 0);
	}
}

int fx_modify(struct fx_end *e, uint32_t state)
{
	struct rnic_qp_attr attr = {.state = state};

	return rnic_qp_modify(e->r, e->ctx, e->mem.handle, &attr,
			      RNIC_QP_STATE);
}

void fx_pair(struct fx *fx, struct fx_end *a, struct fx_end *b,
	     const struct fx_opts *o)
{
	struct rnic *rb = fx->view[1].r.sh ? &fx->view[1].r : fx->r;

	fx_end_new(a, fx, fx->r, 1, 0, o);
	fx_end_new(b, fx, rb, 2, 1, o);
	fx_connect(a, b, RNIC_RTS, o, o->psn, o->psn + 0x1000);
	fx_connect(b, a, RNIC_RTS, o, o->psn + 0x1000, o->psn);
}

void fx_resync(struct fx_end *e)
{
	e->sq_next = fx_line(e)->word & SF_LINE_INDEX_MASK;
}

struct rnic_qp *fx_qp(const struct fx_end *e)
{
	return &e->r->sh->qp[e->qpn & (RNIC_MAX_QP - 1)];
}

struct rnic_cq *fx_cq_state(const struct fx_cq *cq)
{
	return &cq->r->sh->cq[cq->cqn];
}

struct sf_send_line *fx_line(const struct fx_end *e)
{
	return rnic_at(e->r, e->mem.queues + e->mem.line);
}

uint32_t fx_state(const struct fx_end *e)
{
	return fx_qp(e)->state;
}

/* ---- posting and polling -------------------------------------------- */

struct sf_wqe *fx_slot(const struct fx_end *e, uint64_t index)
{
	uint64_t slot = index & ((1ull << e->init.sq_log_depth) - 1);

	return rnic_at(e->r, e->mem.queues + e->mem.sq +
				     (slot << e->init.sq_log_stride));
}

static bool has_args(uint32_t opcode, uint32_t flags)
{
	return flags & SF_WQE_SIGNAL || opcode == SF_OP_ATOMIC_CAS || opcode == SF_OP_ATOMIC_FADD;
}

uint64_t fx_post(struct fx_end *e, const struct fx_wr *wr)
{
	uint64_t index = e->sq_next++;
	struct sf_wqe *wqe = fx_slot(e, index);
	uint32_t stride = 1u << e->init.sq_log_stride, i;
	int args = has_args(wr->opcode, wr->flags);
	struct sf_doorbell *db = rnic_at(e->r, e->mem.doorbells);

	memset(&wqe->inline_len, 0xa5, stride - 8);
	wqe->inline_len = wr->len;
	wqe->counter_id = wr->counter_id;
	wqe->remote_addr = wr->remote_addr;
	wqe->rkey = wr->rkey;
	wqe->imm = wr->imm;
	wqe->xrc_srqn = wr->srqn;
	for (i = 0; i < wr->len && wr->flags & SF_WQE_INLINE; i++) {
		uint32_t at = sf_slot_data_offset(i, args);

		if (at < stride)
			((uint8_t *)wqe)[at] = ((const uint8_t *)wr->data)[i];
	}
	for (i = 0; i < wr->n_sge && i < SF_MAX_SEND_SGE + 2; i++) {
		uint32_t at = sf_slot_data_offset(i * 16, args);

		if (at + 16 <= stride)
			memcpy((char *)wqe + at, &wr->sge[i], 16);
	}
	if (wr->opcode == SF_OP_BIND_MW)
		memcpy(&wqe->sge0, &wr->bind, sizeof(wr->bind));
	if (args) {
		wqe->arg0 = wr->arg0;
		wqe->arg1 = wr->arg1;
	}
	__atomic_store_n(&wqe->commit,
			 sf_commit(wr->opcode, wr->n_sge, wr->flags, index,
				   e->init.sq_log_depth),
			 __ATOMIC_RELEASE);
	__atomic_store_n(&db->value, e->sq_next, __ATOMIC_RELEASE);
	return index;
}

uint64_t fx_send(struct fx_end *e, const struct fx_wr *wr)
{
	uint64_t index = fx_post(e, wr);

	rnic_sq_ring(e->r, e->qpn);
	return index;
}

void fx_recv(struct fx_end *e, uint32_t cookie, const struct sf_sge *sge,
	     uint32_t n)
{
	uint64_t slot = e->rq_next & ((1ull << e->init.rq_log_depth) - 1);
	struct sf_rq_desc *desc =
		rnic_at(e->r, e->mem.queues + e->mem.rq +
				      (slot << e->init.rq_log_stride));
	struct sf_doorbell *db = rnic_at(e->r, e->mem.doorbells);

	memset(desc, 0xa5, 1u << e->init.rq_log_stride);
	desc->cookie = cookie;
	desc->n_sge = n;
	if (n)
		memcpy(desc + 1, sge, n * sizeof(*sge));
	e->rq_next++;
	__atomic_store_n(&db[1].value, e->rq_next, __ATOMIC_RELEASE);
	rnic_rq_ring(e->r, e->qpn);
}

void fx_recv_mr(struct fx_end *e, uint32_t cookie, const struct fx_mr *mr,
		uint64_t off, uint32_t len)
{
	struct sf_sge sge = fx_sge(mr, off, len);

	fx_recv(e, cookie, &sge, 1);
}

bool fx_poll(struct fx_cq *cq, struct sf_cqe *cqe)
{
	uint64_t slot = cq->consumer & ((1ull << cq->log_depth) - 1);
	const struct sf_cqe *at = rnic_at(cq->r, cq->mem.ring + (slot << 6));
	struct sf_cq_ctrl *ctrl = rnic_at(cq->r, cq->mem.ctrl);

	if (sf_cqe_lap(load_acquire(&at->word)) !=
	    (sf_lap(cq->consumer, cq->log_depth) & 0xff))
		return false;
	*cqe = *at;
	cq->consumer++;
	store_release(&ctrl->consumer, cq->consumer);
	return true;
}

struct sf_cqe fx_take_cqe(struct fx_cq *cq, uint32_t opcode, uint32_t status,
			  uint32_t syndrome, uint64_t wr, const char *file,
			  int line)
{
	struct sf_cqe cqe;

	if (!fx_poll(cq, &cqe)) {
		print_error("no CQE\n");
		_fail(file, line);
	}
	_assert_int_equal(sf_cqe_status(cqe.word), status, file, line);
	_assert_int_equal(sf_cqe_syndrome(cqe.word), syndrome, file, line);
	_assert_int_equal(sf_cqe_opcode(cqe.word), opcode, file, line);
	_assert_int_equal(cqe.wr, wr, file, line);
	return cqe;
}

void fx_no_cqe(struct fx_cq *cq, const char *file, int line)
{
	struct sf_cqe cqe;

	if (!fx_poll(cq, &cqe))
		return;
	print_error("unexpected CQE: opcode %#x status %u wr %llu\n",
		    sf_cqe_opcode(cqe.word), sf_cqe_status(cqe.word),
		    (unsigned long long)cqe.wr);
	_fail(file, line);
}

void fx_take_event(struct fx *fx, uint32_t type, uint32_t ctx, uint64_t element,
		   const char *file, int line)
{
	const struct rnic_event *event = &fx->event[fx->events_seen];

	if (fx->events_seen == fx->events) {
		print_error("no event\n");
		_fail(file, line);
	}
	fx->events_seen++;
	_assert_int_equal(event->type, type, file, line);
	_assert_int_equal(event->ctx, ctx, file, line);
	_assert_int_equal(event->element, element, file, line);
}

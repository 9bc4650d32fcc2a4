/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Queue pairs: create, modify, query, destroy, error (IBTA vol. 1, 10.3). */
#include "rnic/internal.h"

/* ---- allowed transitions (IBTA vol. 1, table 91 and figure 125) ------ */

struct transition {
	bool allowed;
	uint32_t required;
	uint32_t optional;
};

#define ALWAYS (RNIC_QP_STATE | RNIC_QP_CUR_STATE)

static const struct transition rc_table[RNIC_ERR + 1][RNIC_ERR + 1] = {
	[RNIC_RESET] = {
		[RNIC_INIT] = {true, RNIC_QP_PKEY_INDEX | RNIC_QP_PORT |
			       RNIC_QP_ACCESS, 0},
	},
	[RNIC_INIT] = {
		[RNIC_INIT] = {true, 0, RNIC_QP_PKEY_INDEX | RNIC_QP_PORT |
			       RNIC_QP_ACCESS},
		[RNIC_RTR] = {true, RNIC_QP_AV | RNIC_QP_PATH_MTU |
			      RNIC_QP_DEST_QPN | RNIC_QP_RQ_PSN |
			      RNIC_QP_MAX_DEST_RD_ATOMIC |
			      RNIC_QP_MIN_RNR_TIMER,
			      RNIC_QP_ALT_PATH | RNIC_QP_ACCESS |
			      RNIC_QP_PKEY_INDEX},
	},
	[RNIC_RTR] = {
		[RNIC_RTS] = {true, RNIC_QP_TIMEOUT | RNIC_QP_RETRY_CNT |
			      RNIC_QP_RNR_RETRY | RNIC_QP_SQ_PSN |
			      RNIC_QP_MAX_RD_ATOMIC,
			      RNIC_QP_ALT_PATH | RNIC_QP_ACCESS |
			      RNIC_QP_MIN_RNR_TIMER |
			      RNIC_QP_PATH_MIG_STATE | RNIC_QP_RATE_LIMIT},
	},
	[RNIC_RTS] = {
		[RNIC_RTS] = {true, 0, RNIC_QP_ACCESS | RNIC_QP_ALT_PATH |
			      RNIC_QP_PATH_MIG_STATE | RNIC_QP_MIN_RNR_TIMER |
			      RNIC_QP_RATE_LIMIT},
		[RNIC_SQD] = {true, 0, RNIC_QP_EN_SQD_NOTIFY},
	},
	[RNIC_SQD] = {
		[RNIC_RTS] = {true, 0, RNIC_QP_ACCESS | RNIC_QP_ALT_PATH |
			      RNIC_QP_PATH_MIG_STATE | RNIC_QP_MIN_RNR_TIMER |
			      RNIC_QP_RATE_LIMIT},
		[RNIC_SQD] = {true, 0, RNIC_QP_PORT | RNIC_QP_AV |
			      RNIC_QP_TIMEOUT | RNIC_QP_RETRY_CNT |
			      RNIC_QP_RNR_RETRY | RNIC_QP_MAX_RD_ATOMIC |
			      RNIC_QP_MAX_DEST_RD_ATOMIC | RNIC_QP_ALT_PATH |
			      RNIC_QP_ACCESS | RNIC_QP_PKEY_INDEX |
			      RNIC_QP_MIN_RNR_TIMER | RNIC_QP_PATH_MIG_STATE},
	},
};

static const struct transition uc_table[RNIC_ERR + 1][RNIC_ERR + 1] = {
	[RNIC_RESET] = {
		[RNIC_INIT] = {true, RNIC_QP_PKEY_INDEX | RNIC_QP_PORT |
			       RNIC_QP_ACCESS, 0},
	},
	[RNIC_INIT] = {
		[RNIC_INIT] = {true, 0, RNIC_QP_PKEY_INDEX | RNIC_QP_PORT |
			       RNIC_QP_ACCESS},
		[RNIC_RTR] = {true, RNIC_QP_AV | RNIC_QP_PATH_MTU |
			      RNIC_QP_DEST_QPN | RNIC_QP_RQ_PSN,
			      RNIC_QP_ALT_PATH | RNIC_QP_ACCESS |
			      RNIC_QP_PKEY_INDEX},
	},
	[RNIC_RTR] = {
		[RNIC_RTS] = {true, RNIC_QP_SQ_PSN,
			      RNIC_QP_ALT_PATH | RNIC_QP_ACCESS |
			      RNIC_QP_PATH_MIG_STATE},
	},
	[RNIC_RTS] = {
		[RNIC_RTS] = {true, 0, RNIC_QP_ACCESS | RNIC_QP_ALT_PATH |
			      RNIC_QP_PATH_MIG_STATE},
		[RNIC_SQD] = {true, 0, RNIC_QP_EN_SQD_NOTIFY},
	},
	[RNIC_SQD] = {
		[RNIC_RTS] = {true, 0, RNIC_QP_ACCESS | RNIC_QP_ALT_PATH |
			      RNIC_QP_PATH_MIG_STATE},
		[RNIC_SQD] = {true, 0, RNIC_QP_AV | RNIC_QP_ALT_PATH |
			      RNIC_QP_ACCESS | RNIC_QP_PKEY_INDEX |
			      RNIC_QP_PATH_MIG_STATE},
	},
	[RNIC_SQE] = {
		[RNIC_RTS] = {true, 0, RNIC_QP_ACCESS},
	},
};

static const struct transition ud_table[RNIC_ERR + 1][RNIC_ERR + 1] = {
	[RNIC_RESET] = {
		[RNIC_INIT] = {true, RNIC_QP_PKEY_INDEX | RNIC_QP_PORT |
			       RNIC_QP_QKEY, 0},
	},
	[RNIC_INIT] = {
		[RNIC_INIT] = {true, 0, RNIC_QP_PKEY_INDEX | RNIC_QP_PORT |
			       RNIC_QP_QKEY},
		[RNIC_RTR] = {true, 0, RNIC_QP_PKEY_INDEX | RNIC_QP_QKEY},
	},
	[RNIC_RTR] = {
		[RNIC_RTS] = {true, RNIC_QP_SQ_PSN, RNIC_QP_QKEY},
	},
	[RNIC_RTS] = {
		[RNIC_RTS] = {true, 0, RNIC_QP_QKEY},
		[RNIC_SQD] = {true, 0, RNIC_QP_EN_SQD_NOTIFY},
	},
	[RNIC_SQD] = {
		[RNIC_RTS] = {true, 0, RNIC_QP_QKEY},
		[RNIC_SQD] = {true, 0, RNIC_QP_PKEY_INDEX | RNIC_QP_QKEY},
	},
	[RNIC_SQE] = {
		[RNIC_RTS] = {true, 0, RNIC_QP_QKEY},
	},
};

static const struct transition raw_table[RNIC_ERR + 1][RNIC_ERR + 1] = {
	[RNIC_RESET] = { [RNIC_INIT] = {true, RNIC_QP_PORT, 0} },
	[RNIC_INIT] = {
		[RNIC_INIT] = {true, 0, RNIC_QP_PORT},
		[RNIC_RTR] = {true, 0, 0},
	},
	[RNIC_RTR] = { [RNIC_RTS] = {true, 0, 0} },
	[RNIC_RTS] = {
		[RNIC_RTS] = {true, 0, 0},
		[RNIC_SQD] = {true, 0, RNIC_QP_EN_SQD_NOTIFY},
	},
	[RNIC_SQD] = {
		[RNIC_RTS] = {true, 0, 0},
		[RNIC_SQD] = {true, 0, 0},
	},
	[RNIC_SQE] = { [RNIC_RTS] = {true, 0, 0} },
};

/* Ready is RTR: there is nothing that it could send. */
static const struct transition wq_table[RNIC_ERR + 1][RNIC_ERR + 1] = {
	[RNIC_RESET] = { [RNIC_RTR] = {true, 0, 0} },
	[RNIC_RTR] = { [RNIC_RTR] = {true, 0, 0} },
};

/*
 * Of RC's attributes, those of the half that an XRC QP lacks: ignored, as the
 * kernel does.
 */
static uint32_t absent(uint32_t type)
{
	switch (type) {
	case RNIC_QPT_XRC_SEND:
		return RNIC_QP_MAX_DEST_RD_ATOMIC | RNIC_QP_MIN_RNR_TIMER;
	case RNIC_QPT_XRC_RECV:
		return RNIC_QP_RETRY_CNT | RNIC_QP_RNR_RETRY |
		       RNIC_QP_MAX_RD_ATOMIC;
	default:
		return 0;
	}
}

static bool transition_ok(uint32_t type, uint32_t from, uint32_t to,
			  uint32_t mask)
{
	uint32_t no = absent(type), required;
	const struct transition *t;

	if (to > RNIC_ERR)
		return false;
	/* From anywhere; no other attribute.  RESET has nothing to fail. */
	if (to == RNIC_RESET || to == RNIC_ERR)
		return !(mask & ~ALWAYS) &&
		       !(from == RNIC_RESET && to == RNIC_ERR);
	if (type == RNIC_QPT_UD)
		t = &ud_table[from][to];
	else if (type == RNIC_QPT_UC)
		t = &uc_table[from][to];
	else if (type == RNIC_QPT_RAW_PACKET)
		t = &raw_table[from][to];
	else if (type == RNIC_QPT_WQ)
		t = &wq_table[from][to];
	else
		t = &rc_table[from][to];
	required = t->required & ~no;
	return t->allowed && (mask & required) == required &&
	       !(mask & ~(ALWAYS | required | (t->optional & ~no)));
}

/* ---- attribute values ----------------------------------------------- */

static const struct rnic_port *port_of(const struct rnic *r, uint32_t dev,
				       uint32_t port)
{
	if (dev >= r->sh->devices || !port ||
	    port > r->sh->device[dev].info.ports)
		return NULL;
	return &r->sh->device[dev].port[port - 1];
}

bool rnic_av_ok(const struct rnic *r, uint32_t dev, const struct rnic_av *av)
{
	const struct rnic_port *port =
		port_of(r, dev, av->port_num ? av->port_num : 1);

	if (!port || av->sl > 15)
		return false;
	if (av->is_global)
		return av->sgid_index < port->info.gids;
	/* RoCE has no other address than the GID. */
	return port->info.link_layer == RNIC_INFINIBAND;
}

static bool values_ok(const struct rnic *r, const struct rnic_qp *qp,
		      const struct rnic_qp_attr *a, uint32_t mask)
{
	const struct rnic_port *port;

	if (mask & RNIC_QP_PORT && !port_of(r, qp->init.dev, a->port_num))
		return false;
	if (mask & RNIC_QP_PKEY_INDEX && a->pkey_index)
		return false;
	if (mask & RNIC_QP_AV && !rnic_av_ok(r, qp->init.dev, &a->av))
		return false;
	if (mask & RNIC_QP_ALT_PATH &&
	    !rnic_av_ok(r, qp->init.dev, &a->alt_av))
		return false;
	port = port_of(r, qp->init.dev, qp->attr.port_num);
	if (mask & RNIC_QP_PATH_MTU &&
	    (!a->path_mtu || (port && a->path_mtu > port->info.max_mtu)))
		return false;
	if (mask & RNIC_QP_MAX_RD_ATOMIC &&
	    a->max_rd_atomic > RNIC_MAX_RD_ATOMIC)
		return false;
	if (mask & RNIC_QP_MAX_DEST_RD_ATOMIC &&
	    a->max_dest_rd_atomic > RNIC_MAX_RD_ATOMIC)
		return false;
	return !((mask & RNIC_QP_TIMEOUT && a->timeout > 31) ||
		 (mask & RNIC_QP_RETRY_CNT && a->retry_cnt > 7) ||
		 (mask & RNIC_QP_RNR_RETRY && a->rnr_retry > 7) ||
		 (mask & RNIC_QP_MIN_RNR_TIMER && a->min_rnr_timer > 31) ||
		 (mask & RNIC_QP_DEST_QPN && a->dest_qpn > RNIC_QPN_MASK) ||
		 (mask & RNIC_QP_ACCESS && a->access & ~0xfu));
}

static void take_values(struct rnic_qp_attr *to, const struct rnic_qp_attr *a,
			uint32_t mask)
{
#define TAKE(bit, member)                                                      \
	do {                                                                   \
		if (mask & (bit))                                              \
			to->member = a->member;                                \
	} while (0)
	TAKE(RNIC_QP_EN_SQD_NOTIFY, en_sqd_notify);
	TAKE(RNIC_QP_ACCESS, access);
	TAKE(RNIC_QP_PKEY_INDEX, pkey_index);
	TAKE(RNIC_QP_PORT, port_num);
	TAKE(RNIC_QP_QKEY, qkey);
	TAKE(RNIC_QP_AV, av);
	TAKE(RNIC_QP_PATH_MTU, path_mtu);
	TAKE(RNIC_QP_TIMEOUT, timeout);
	TAKE(RNIC_QP_RETRY_CNT, retry_cnt);
	TAKE(RNIC_QP_RNR_RETRY, rnr_retry);
	TAKE(RNIC_QP_RQ_PSN, rq_psn);
	TAKE(RNIC_QP_MAX_RD_ATOMIC, max_rd_atomic);
	TAKE(RNIC_QP_ALT_PATH, alt_av);
	TAKE(RNIC_QP_ALT_PATH, alt_pkey_index);
	TAKE(RNIC_QP_ALT_PATH, alt_port_num);
	TAKE(RNIC_QP_ALT_PATH, alt_timeout);
	TAKE(RNIC_QP_MIN_RNR_TIMER, min_rnr_timer);
	TAKE(RNIC_QP_SQ_PSN, sq_psn);
	TAKE(RNIC_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
	TAKE(RNIC_QP_PATH_MIG_STATE, path_mig_state);
	TAKE(RNIC_QP_DEST_QPN, dest_qpn);
	TAKE(RNIC_QP_RATE_LIMIT, rate_limit);
#undef TAKE
	to->rq_psn &= RNIC_PSN_MASK;
	to->sq_psn &= RNIC_PSN_MASK;
}

/* ---- where a path leads --------------------------------------------- */

static bool port_has(const struct rnic_port *port, const struct rnic_av *av)
{
	uint32_t i;

	if (port->info.state != 4) /* active */
		return false;
	if (!av->is_global)
		return port->info.lid == av->dlid;
	for (i = 0; i < port->info.gids && i < RNIC_MAX_GIDS; i++)
		if (!memcmp(port->info.gid[i], av->dgid, 16))
			return true;
	return false;
}

uint32_t rnic_av_devices(const struct rnic *r, const struct rnic_av *av)
{
	uint32_t dev, port, devs = 0;

	for (dev = 0; dev < r->sh->devices; dev++) {
		const struct rnic_device *d = &r->sh->device[dev];

		for (port = 0; port < d->info.ports; port++)
			if (port_has(&d->port[port], av))
				devs |= 1u << dev;
	}
	return devs;
}

/*
 * Devices may share addresses (two Ethernet devices on one interface): then
 * the one that has the destination QP is meant.
 */
static uint32_t resolve(const struct rnic *r, const struct rnic_qp *qp)
{
	const struct rnic_qp *peer = rnic_qp_get(r, qp->attr.dest_qpn);
	uint32_t devs = rnic_av_devices(r, &qp->attr.av);

	if (!rnic_port_active(r, qp->init.dev, qp->attr.port_num))
		return ~0u;
	if (peer && devs & 1u << peer->init.dev)
		return peer->init.dev;
	return devs ? (uint32_t)__builtin_ctz(devs) : ~0u;
}

void rnic_qp_paths_changed(struct rnic *r)
{
	uint32_t i;

	for (i = 0; i < r->sh->qps.high && i < RNIC_MAX_QP; i++) {
		struct rnic_qp *qp = &r->sh->qp[i];
		uint32_t state = load_acquire(&qp->state);

		if (load_acquire(&qp->qpn) && !rnic_datagrams(qp) &&
		    state >= RNIC_RTR && state <= RNIC_SQE)
			store_relaxed(&qp->peer_dev, resolve(r, qp));
	}
}

/* ---- create --------------------------------------------------------- */

static bool qp_live(const struct rnic *r, uint32_t i)
{
	return r->sh->qp[i].qpn != 0;
}

static uint64_t round_page(uint64_t len)
{
	return (len + RNIC_PAGE - 1) & ~(uint64_t)(RNIC_PAGE - 1);
}

/* Types that there are, on this kind of link. */
static bool type_ok(const struct rnic *r, const struct rnic_qp_init *init)
{
	switch (init->type) {
	case RNIC_QPT_RC:
	case RNIC_QPT_UC:
	case RNIC_QPT_UD:
	case RNIC_QPT_XRC_SEND:
	case RNIC_QPT_XRC_RECV:
		return true;
	case RNIC_QPT_RAW_PACKET:
	case RNIC_QPT_WQ:
	case RNIC_QPT_HASH:
		return r->sh->device[init->dev % RNIC_MAX_DEVICES]
			       .port[0]
			       .info.link_layer == RNIC_ETHERNET;
	default:
		return false;
	}
}

/* It only chooses: its queues are never used, and it has no CQ. */
static bool hash_ok(const struct rnic *r, uint32_t ctx,
		    const struct rnic_qp_init *init)
{
	return rnic_wq_table_of(r, ctx, init->hash.table) &&
	       !(init->hash.fields & ~RNIC_HASH_FIELDS) && !init->send_cqn &&
	       !init->recv_cqn && !init->srqn;
}

static bool init_ok(const struct rnic *r, uint32_t ctx,
		    const struct rnic_qp_init *init)
{
	const struct rnic_cq *scq = rnic_cq_get(r, init->send_cqn);
	const struct rnic_cq *rcq = rnic_cq_get(r, init->recv_cqn);
	const struct rnic_srq *srq = rnic_srq_get(r, init->srqn);

	if (init->dev >= r->sh->devices || init->pdn >= RNIC_MAX_PD)
		return false;
	if (init->type == RNIC_QPT_XRC_RECV)
		return rnic_xrcd_get(r, ctx, init->xrcd) && !init->pdn &&
		       !init->send_cqn && !init->recv_cqn && !init->srqn;
	if (!r->sh->pd[init->pdn].live || r->sh->pd[init->pdn].ctx != ctx)
		return false;
	if (init->type == RNIC_QPT_XRC_SEND && !init->recv_cqn)
		rcq = scq;
	if (init->type == RNIC_QPT_HASH) {
		if (!hash_ok(r, ctx, init))
			return false;
	} else if (!scq || !rcq || scq->ctx != ctx || rcq->ctx != ctx) {
		return false;
	}
	if (init->sq_log_depth > SF_MAX_LOG_DEPTH ||
	    init->sq_log_stride < SF_SLOT_LOG_MIN ||
	    init->sq_log_stride > SF_SLOT_LOG_MAX)
		return false;
	if (init->type == RNIC_QPT_XRC_SEND)
		return !init->srqn && !init->rq_log_depth &&
		       !init->rq_log_stride;
	if (init->srqn)
		return srq && srq->ctx == ctx && !srq->xrcd &&
		       !init->rq_log_depth && !init->rq_log_stride;
	return init->rq_log_depth <= SF_MAX_LOG_DEPTH &&
	       init->rq_log_stride >= SF_RQ_LOG_MIN &&
	       init->rq_log_stride <= SF_RQ_LOG_MAX;
}

/* Queue memory: the send line, then the send queue, then the receive queue. */
static bool alloc_queues(struct rnic *r, struct rnic_qp *qp,
			 struct rnic_qp_mem *mem)
{
	const struct rnic_qp_init *init = &qp->init;
	uint64_t stride = 1ull << init->sq_log_stride;
	uint64_t sq_len = stride << init->sq_log_depth;
	uint64_t rq_len =
		init->rq_log_stride ?
			1ull << (init->rq_log_depth + init->rq_log_stride) :
			0;

	mem->line = 0;
	mem->sq = stride > 64 ? stride : 64;
	mem->rq = mem->sq + sq_len;
	mem->queues_len = round_page(mem->rq + rq_len);
	mem->queues = r->ops->mem_alloc(r->host, mem->queues_len);
	mem->doorbells = r->ops->mem_alloc(r->host, RNIC_PAGE);
	if (!mem->queues || !mem->doorbells) {
		if (mem->queues)
			r->ops->mem_free(r->host, mem->queues,
					 mem->queues_len);
		if (mem->doorbells)
			r->ops->mem_free(r->host, mem->doorbells, RNIC_PAGE);
		return false;
	}
	qp->queues = mem->queues;
	qp->queues_len = mem->queues_len;
	qp->line = mem->queues + mem->line;
	qp->sq = mem->queues + mem->sq;
	qp->rq = mem->queues + mem->rq;
	qp->sq_doorbell = mem->doorbells;
	qp->rq_doorbell = mem->doorbells + sizeof(struct sf_doorbell);
	return true;
}

/* The same index comes back under another number, 1024 times. */
static uint32_t next_qpn(uint32_t last, uint32_t index)
{
	uint32_t generation = (last >> RNIC_QPN_INDEX_BITS) + 1;
	uint32_t limit = 1u << (24 - RNIC_QPN_INDEX_BITS);

	/* 0 and 1 are special, 0xffffff means multicast. */
	if (generation >= limit - 1)
		generation = 1;
	return generation << RNIC_QPN_INDEX_BITS | index;
}

/*
 * All but the locks: somebody who rang the entry's previous user may be trying
 * them right now.  They are made once.
 */
static void clear(struct rnic *r, struct rnic_qp *qp)
{
	size_t lock = sizeof(struct rnic_lock);

	if (!qp->last_qpn) {
		r->ops->lock_init(r->host, &qp->req.lock);
		r->ops->lock_init(r->host, &qp->resp.lock);
	}
	memset(qp, 0, offsetof(struct rnic_qp, req));
	memset((char *)&qp->req + lock, 0, sizeof(qp->req) - lock);
	memset((char *)&qp->resp + lock, 0, sizeof(qp->resp) - lock);
}

/* What it uses has one user more, or less.  Number 0 is no object. */
static void use(struct rnic *r, const struct rnic_qp_init *init, int n)
{
	r->sh->pd[init->pdn].users += n;
	if (init->type == RNIC_QPT_HASH) {
		r->sh->wq_table[init->hash.table % RNIC_MAX_WQ_TABLE].users +=
			n;
	} else {
		r->sh->cq[init->send_cqn].users += n;
		r->sh->cq[init->recv_cqn].users += n;
	}
	r->sh->srq[init->srqn].users += n;
}

int rnic_qp_create(struct rnic *r, uint32_t ctx,
		   const struct rnic_qp_init *init, uint32_t *qpn,
		   struct rnic_qp_mem *mem)
{
	struct rnic_qp_ref *ref = NULL;
	struct rnic_qp *qp;
	uint32_t index, last;
	int err;

	if (!type_ok(r, init))
		return EOPNOTSUPP;
	if (!init_ok(r, ctx, init))
		return EINVAL;
	if (init->type == RNIC_QPT_XRC_RECV) {
		err = rnic_qp_ref_take(r, ctx, init->xrcd, init->user_handle,
				       &mem->handle);
		if (err)
			return err;
		ref = &r->sh->qp_ref[mem->handle & ~RNIC_QP_REF];
	}
	err = rnic_pool_take(r, &r->sh->qps, RNIC_MAX_QP, qp_live, &index);
	if (err)
		goto err_ref;
	qp = &r->sh->qp[index];
	last = qp->last_qpn;
	clear(r, qp);
	qp->last_qpn = last;
	qp->init = *init;
	qp->recv_pdn = init->srqn ? r->sh->srq[init->srqn].pdn : init->pdn;
	qp->resp.srqn = init->srqn;
	if (ref) {
		/* An idle send queue that nobody sees: one kind of QP less. */
		qp->init.sq_log_depth = 0;
		qp->init.sq_log_stride = SF_SLOT_LOG_MIN;
		qp->domain = r->sh->xrcd[init->xrcd].domain;
		qp->refs = 1;
	}
	if (!alloc_queues(r, qp, mem)) {
		r->sh->qps.used--;
		err = ENOMEM;
		goto err_ref;
	}
	qp->ctx = ref ? RNIC_CTX_NOBODY : ctx;
	qp->peer_dev = ~0u;
	qp->link = RNIC_LINK_DIRECT;
	qp->attr.cap = init->cap;
	qp->attr.port_num = 1;
	mem->sq_start = 1ull << qp->init.sq_log_depth;
	mem->rq_start = 0;
	rnic_requester_reset(r, qp, mem->sq_start);
	rnic_responder_reset(r, qp);
	use(r, init, 1);
	*qpn = next_qpn(last, index);
	qp->last_qpn = *qpn;
	if (ref)
		store_release(&ref->qpn, *qpn);
	else
		mem->handle = *qpn;
	store_release(&qp->qpn, *qpn);
	return 0;

err_ref:
	if (ref)
		rnic_qp_ref_drop(r, ref);
	return err;
}

/* ---- modify --------------------------------------------------------- */

/* Takes both sides, one after the other, and drops them: nobody is inside. */
static bool quiesce(struct rnic *r, struct rnic_qp *qp)
{
	if (!rnic_requester_lock(r, qp))
		return false;
	r->ops->unlock(r->host, &qp->req.lock);
	if (!rnic_responder_lock(r, qp))
		return false;
	r->ops->unlock(r->host, &qp->resp.lock);
	return true;
}

static void bank_counters(struct rnic *r, struct rnic_qp *qp)
{
	struct rnic_device *dev = &r->sh->device[qp->init.dev];
	uint32_t port = qp->attr.port_num ? qp->attr.port_num - 1 : 0;

	if (port >= dev->info.ports)
		port = 0;
	rnic_counters_add(&dev->port[port].counters, &qp->req.counters);
	rnic_counters_add(&dev->port[port].counters, &qp->resp.counters);
	memset(&qp->req.counters, 0, sizeof(qp->req.counters));
	memset(&qp->resp.counters, 0, sizeof(qp->resp.counters));
}

static int to_reset(struct rnic *r, struct rnic_qp *qp)
{
	uint64_t depth = 1ull << qp->init.sq_log_depth;
	uint64_t head;

	store_release(&qp->state, RNIC_RESET);
	if (!quiesce(r, qp))
		return EBUSY;
	bank_counters(r, qp);
	/* Under its lock: who only looks whether a wait is over writes, too. */
	if (!rnic_requester_lock(r, qp))
		return EBUSY;
	/* Above every index that can be in the ring: old contents look old. */
	head = qp->req.una[qp->req.una_sel & 1].index;
	rnic_requester_reset(r, qp, (head + 2 * depth - 1) & ~(depth - 1));
	r->ops->unlock(r->host, &qp->req.lock);
	if (!rnic_responder_lock(r, qp))
		return EBUSY;
	rnic_responder_reset(r, qp);
	r->ops->unlock(r->host, &qp->resp.lock);
	memset(&qp->attr, 0, sizeof(qp->attr));
	qp->attr.cap = qp->init.cap;
	qp->attr.port_num = 1;
	store_release(&qp->fatal, 0);
	store_release(&qp->comm_est, 0);
	return 0;
}

static int to_err(struct rnic *r, struct rnic_qp *qp)
{
	struct rnic_call call;

	rnic_call_begin(&call, r);
	rnic_qp_fail(&call, qp, RNIC_EVENT_NONE);
	rnic_call_end(&call);
	return 0;
}

void rnic_qp_event(struct rnic_call *call, const struct rnic_qp *qp,
		   uint32_t type)
{
	rnic_call_event(call, &(struct rnic_event){
				      .type = type,
				      .ctx = qp->ctx,
				      .number = qp->qpn,
				      .element = qp->init.user_handle,
			      });
}

/* Where it is noted that an event of this type is due. */
static uint32_t *due_word(struct rnic_qp *qp, uint32_t type)
{
	if (type == RNIC_EVENT_QP_LAST_WQE_REACHED)
		return &qp->resp.last_wqe;
	if (type == RNIC_EVENT_COMM_EST)
		return &qp->comm_est;
	return type == RNIC_EVENT_SQ_DRAINED ? &qp->req.drained : &qp->fatal;
}

void rnic_qp_raise(struct rnic_call *call, const struct rnic_event *event)
{
	struct rnic *r = call->r;
	struct rnic_qp *qp = rnic_qp_get(r, event->number);
	uint32_t *due;
	bool locked;

	if (!qp)
		return;
	if (r->ops->event_soon)
		r->ops->event_soon(r->host, event);
	/* rnic_qp_destroy() passes through this lock before it counts. */
	locked = rnic_responder_lock(r, qp);
	due = due_word(qp, event->type);
	if (load_acquire(&qp->qpn) == event->number &&
	    load_acquire(due) & RNIC_DUE) {
		struct rnic_event told = *event;

		if (qp->init.type == RNIC_QPT_WQ)
			told.type = RNIC_EVENT_WQ_FATAL;
		if (qp->ctx == RNIC_CTX_NOBODY) {
			rnic_qp_ref_raise(r, qp, &told);
		} else {
			qp->async_events++;
			r->ops->event(r->host, &told);
		}
		store_release(due, event->type);
	}
	if (locked)
		rnic_responder_unlock(call, qp);
}

/* Events that somebody who died did not get to raise. */
void rnic_qp_repair_events(struct rnic_call *call, struct rnic_qp *qp)
{
	uint32_t fatal = load_acquire(&qp->fatal);

	if (fatal & RNIC_DUE)
		rnic_qp_event(call, qp, fatal & ~RNIC_DUE);
	if (load_acquire(&qp->comm_est) & RNIC_DUE)
		rnic_qp_event(call, qp, RNIC_EVENT_COMM_EST);
	if (load_acquire(&qp->req.drained) & RNIC_DUE)
		rnic_qp_event(call, qp, RNIC_EVENT_SQ_DRAINED);
	if (load_acquire(&qp->resp.last_wqe) & RNIC_DUE)
		rnic_qp_event(call, qp, RNIC_EVENT_QP_LAST_WQE_REACHED);
}

bool rnic_qp_pass(struct rnic_call *call, struct rnic_qp *qp)
{
	struct rnic *r = call->r;

	if (!rnic_requester_lock(r, qp))
		return false;
	r->ops->unlock(r->host, &qp->req.lock);
	rnic_fence_after_unlock();
	if (load_relaxed(&qp->req.mark))
		rnic_requester_kick(call, qp, 0);
	if (!rnic_responder_lock(r, qp))
		return false;
	rnic_responder_unlock(call, qp);
	return true;
}

static int enter(struct rnic *r, struct rnic_qp *qp, uint32_t from, uint32_t to)
{
	if (to == RNIC_RTR) {
		if (!rnic_datagrams(qp))
			qp->peer_dev = resolve(r, qp);
		rnic_responder_start(qp, qp->attr.rq_psn);
	}
	if (to == RNIC_RTS && from == RNIC_RTR)
		rnic_requester_start(qp, qp->attr.sq_psn);
	if (to == RNIC_RTS && from == RNIC_SQE) {
		if (!rnic_requester_resume(r, qp))
			return EBUSY;
		from = RNIC_RTS;
	}
	if (to == RNIC_SQD && from == RNIC_SQD)
		qp->peer_dev = resolve(r, qp);
	if (to == RNIC_SQD && from == RNIC_RTS)
		store_release(&qp->req.drained, !!qp->attr.en_sqd_notify);
	/* An error that happened meanwhile is not undone. */
	if (!__atomic_compare_exchange_n(&qp->state, &from, to, false,
					 __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		return 0;
	if (to == RNIC_RTS || to == RNIC_SQD)
		rnic_sq_ring(r, qp->qpn); /* posted before; drained by now */
	return 0;
}

struct rnic_qp *rnic_qp_of(const struct rnic *r, uint32_t ctx, uint32_t handle)
{
	const struct rnic_qp_ref *ref = rnic_qp_ref_get(r, ctx, handle);
	struct rnic_qp *qp = rnic_qp_get(r, ref ? ref->qpn : handle);

	return qp && (ref || qp->ctx == ctx) ? qp : NULL;
}

int rnic_qp_change(struct rnic *r, struct rnic_qp *qp,
		   const struct rnic_qp_attr *attr, uint32_t mask)
{
	uint32_t from, to;

	from = load_acquire(&qp->state);
	to = mask & RNIC_QP_STATE ? attr->state : from;
	if (mask & RNIC_QP_CUR_STATE && attr->cur_state != from)
		return EINVAL;
	mask &= ~absent(qp->init.type);
	if (!transition_ok(qp->init.type, from, to, mask) ||
	    !values_ok(r, qp, attr, mask))
		return EINVAL;
	if (to == RNIC_RESET)
		return to_reset(r, qp);
	if (to == RNIC_ERR)
		return to_err(r, qp);
	take_values(&qp->attr, attr, mask);
	return enter(r, qp, from, to);
}

int rnic_qp_modify(struct rnic *r, uint32_t ctx, uint32_t handle,
		   const struct rnic_qp_attr *attr, uint32_t mask)
{
	struct rnic_qp *qp = rnic_qp_of(r, ctx, handle);

	if (!qp || qp->init.type == RNIC_QPT_WQ)
		return EINVAL;
	if (qp->init.type == RNIC_QPT_HASH)
		return EOPNOTSUPP; /* it is ready all its life */
	return rnic_qp_change(r, qp, attr, mask);
}

int rnic_qp_query(struct rnic *r, uint32_t ctx, uint32_t handle,
		  struct rnic_qp_attr *attr, struct rnic_qp_init *init)
{
	const struct rnic_qp_ref *ref = rnic_qp_ref_get(r, ctx, handle);
	const struct rnic_qp *qp = rnic_qp_of(r, ctx, handle);

	if (!qp)
		return EINVAL;
	*attr = qp->attr;
	attr->state = attr->cur_state = load_acquire(&qp->state);
	attr->cap = qp->init.cap;
	attr->sq_draining = attr->state == RNIC_SQD && !rnic_sq_drained(qp);
	*init = qp->init;
	if (ref)
		init->user_handle = ref->user_handle;
	return 0;
}

static int destroy(struct rnic *r, struct rnic_qp *qp)
{
	uint32_t qpn = qp->qpn;

	if (qp->mcasts || qp->users)
		return EBUSY;
	/* Who looks it up from now on finds nothing; who is inside leaves. */
	store_release(&qp->state, RNIC_RESET);
	__atomic_store_n(&qp->qpn, 0, __ATOMIC_SEQ_CST);
	if (!quiesce(r, qp)) {
		store_release(&qp->qpn, qpn);
		return EBUSY;
	}
	bank_counters(r, qp);
	r->ops->mem_free(r->host, qp->queues, qp->queues_len);
	r->ops->mem_free(r->host, qp->sq_doorbell, RNIC_PAGE);
	use(r, &qp->init, -1);
	r->sh->qps.used--;
	return 0;
}

/* Closes it; the last who does destroys the QP. */
static int close_ref(struct rnic *r, struct rnic_qp *qp,
		     struct rnic_qp_ref *ref, uint32_t *async_events)
{
	int err = 0;

	if (qp->refs == 1)
		err = destroy(r, qp);
	else if (rnic_responder_lock(r, qp)) /* no event is on its way now */
		r->ops->unlock(r->host, &qp->resp.lock);
	else
		err = EBUSY;
	if (err)
		return err;
	qp->refs--;
	*async_events = load_acquire(&ref->async_events);
	rnic_qp_ref_drop(r, ref);
	return 0;
}

int rnic_qp_destroy(struct rnic *r, uint32_t ctx, uint32_t handle,
		    uint32_t *async_events)
{
	struct rnic_qp_ref *ref = rnic_qp_ref_get(r, ctx, handle);
	struct rnic_qp *qp = rnic_qp_of(r, ctx, handle);
	int err;

	if (!qp)
		return EINVAL;
	if (ref)
		return close_ref(r, qp, ref, async_events);
	err = destroy(r, qp);
	if (!err)
		*async_events = load_acquire(&qp->async_events);
	return err;
}

/* The send queue of an unreliable QP: receiving goes on (figure 125). */
void rnic_sq_fail(struct rnic_call *call, struct rnic_qp *qp)
{
	uint32_t state = RNIC_RTS;

	if (__atomic_compare_exchange_n(&qp->state, &state, RNIC_SQE, false,
					__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		rnic_call_flush_qp(call, qp);
	else
		rnic_qp_fail(call, qp, RNIC_EVENT_NONE);
}

/* ---- error ---------------------------------------------------------- */

void rnic_qp_fail(struct rnic_call *call, struct rnic_qp *qp, uint32_t event)
{
	uint32_t state = load_acquire(&qp->state), none = 0;

	/* Before the state: whoever sees ERR does not see to the event. */
	if (state != RNIC_RESET && event != RNIC_EVENT_NONE &&
	    __atomic_compare_exchange_n(&qp->fatal, &none, event | RNIC_DUE,
					false, __ATOMIC_SEQ_CST,
					__ATOMIC_SEQ_CST))
		rnic_qp_event(call, qp, event);
	while (state != RNIC_ERR && state != RNIC_RESET &&
	       !__atomic_compare_exchange_n(&qp->state, &state, RNIC_ERR, false,
					    __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST))
		;
	if (state != RNIC_RESET)
		rnic_call_flush_qp(call, qp);
}

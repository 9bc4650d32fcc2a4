/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Steering of raw packets: rules, their counters, indirection tables, work
 * queues.  All Ethernet ports of the fabric are one segment on which every
 * port hears every frame; the rules say who receives it.
 *
 * A rule is a value and a mask over the headers of a frame.  Control calls
 * write the table, senders read it without a lock: an entry counts if its
 * number is the same before and after.
 */
#include "rnic/internal.h"

/* ---- match ---------------------------------------------------------- */

typedef uint64_t __attribute__((may_alias, aligned(4))) key_word;

#define KEY_WORDS (sizeof(struct rnic_flow_key) / sizeof(key_word))

_Static_assert(sizeof(struct rnic_headers) ==
			       offsetof(struct rnic_headers, gre_key) + 4 &&
		       sizeof(struct rnic_flow_key) % sizeof(key_word) == 0,
	       "no padding: keys are compared as words");

static bool key_matches(const struct rnic_flow_key *key,
			const struct rnic_flow_key *value,
			const struct rnic_flow_key *mask)
{
	const key_word *k = (const key_word *)key;
	const key_word *v = (const key_word *)value;
	const key_word *m = (const key_word *)mask;
	uint32_t i;

	for (i = 0; i < KEY_WORDS; i++)
		if ((k[i] ^ v[i]) & m[i])
			return false;
	return true;
}

/* What a rule that matches says, as of one moment. */
struct verdict {
	uint32_t qpn;
	uint32_t tag;
	uint32_t rank;
	uint32_t flags;
	uint32_t counters;
	bool sniffer;
};

static bool flow_says(const struct rnic *r, uint32_t i,
		      const struct rnic_frame *frame, struct verdict *v)
{
	const struct rnic_flow *flow = &r->sh->flow[i];
	uint32_t handle = load_acquire(&flow->handle);

	if (!handle ||
	    !key_matches(&frame->key, &flow->attr.value, &flow->attr.mask))
		return false;
	*v = (struct verdict){
		.qpn = flow->attr.qpn,
		.tag = flow->attr.tag,
		.rank = flow->rank,
		.flags = flow->attr.flags,
		.counters = flow->attr.counters,
		.sniffer = flow->attr.type == RNIC_FLOW_SNIFFER,
	};
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return load_relaxed(&flow->handle) == handle;
}

static uint32_t flows_high(const struct rnic *r)
{
	uint32_t high = load_acquire(&r->sh->flows.high);

	return high < RNIC_MAX_FLOW ? high : RNIC_MAX_FLOW;
}

static void count(struct rnic *r, uint32_t id, uint32_t len)
{
	struct rnic_flow_counters *c;

	if (!id || id >= RNIC_MAX_FLOW_COUNTERS)
		return;
	c = &r->sh->flow_count[id];
	__atomic_fetch_add(&c->count.packets, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&c->count.bytes, len, __ATOMIC_RELAXED);
}

/* Rules that match, as bits. */
struct matches {
	uint64_t bits[RNIC_MAX_FLOW / 64];
	uint32_t words;
	uint32_t rank; /* at which the frame is kept from later rules */
	bool drop;
};

static void find_matches(const struct rnic *r, const struct rnic_frame *frame,
			 struct matches *m)
{
	uint32_t i, high = flows_high(r);
	struct verdict v;

	m->rank = ~0u;
	m->drop = false;
	m->words = (high + 63) / 64;
	memset(m->bits, 0, m->words * sizeof(m->bits[0]));
	for (i = 0; i < high; i++) {
		if (!flow_says(r, i, frame, &v))
			continue;
		m->bits[i / 64] |= 1ull << (i % 64);
		if (v.sniffer || v.rank > m->rank ||
		    v.flags & RNIC_FLOW_DONT_TRAP)
			continue;
		m->drop = v.flags & RNIC_FLOW_DROP ||
			  (m->drop && v.rank == m->rank);
		m->rank = v.rank;
	}
}

/* A queue pair gets one copy, however many rules are for it. */
static uint32_t add_dest(struct rnic_flow_dest dest[], uint32_t n,
			 const struct verdict *v)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		if (dest[i].qpn == v->qpn)
			return n;
	if (n == RNIC_MAX_COPIES)
		return n;
	dest[n] = (struct rnic_flow_dest){v->qpn, v->tag};
	return n + 1;
}

/* The rule has its say about a frame that it matches. */
static uint32_t carry_out(struct rnic *r, const struct rnic_frame *frame,
			  const struct matches *m, const struct verdict *v,
			  struct rnic_flow_dest dest[], uint32_t n)
{
	if (v->rank > m->rank && !v->sniffer)
		return n;
	count(r, v->counters, frame->len);
	if (v->flags & RNIC_FLOW_DROP ||
	    (m->drop && v->rank == m->rank && !v->sniffer))
		return n;
	return add_dest(dest, n, v);
}

uint32_t rnic_flow_match(struct rnic *r, const struct rnic_frame *frame,
			 struct rnic_flow_dest dest[])
{
	struct matches m;
	struct verdict v;
	uint32_t w, n = 0;

	find_matches(r, frame, &m);
	for (w = 0; w < m.words; w++) {
		uint64_t bits = m.bits[w];

		for (; bits; bits &= bits - 1) {
			uint32_t i = w * 64 + __builtin_ctzll(bits);

			/* It may be another's by now. */
			if (flow_says(r, i, frame, &v))
				n = carry_out(r, frame, &m, &v, dest, n);
		}
	}
	return n;
}

/* ---- rules ---------------------------------------------------------- */

static bool flow_live(const struct rnic *r, uint32_t i)
{
	return i == 0 || r->sh->flow[i].live;
}

static bool attr_ok(const struct rnic *r, uint32_t ctx,
		    const struct rnic_qp *qp, const struct rnic_flow_attr *attr)
{
	const struct rnic_flow_counters *c =
		&r->sh->flow_count[attr->counters % RNIC_MAX_FLOW_COUNTERS];

	if (!attr->port || attr->port > r->sh->device[qp->init.dev].info.ports)
		return false;
	if (attr->type > RNIC_FLOW_SNIFFER || attr->priority > UINT16_MAX ||
	    attr->flags & ~(RNIC_FLOW_DONT_TRAP | RNIC_FLOW_DROP))
		return false;
	return !attr->counters || (attr->counters < RNIC_MAX_FLOW_COUNTERS &&
				   c->live && c->ctx == ctx);
}

/* Defaults come after all others. */
static uint32_t rank_of(const struct rnic_flow_attr *attr)
{
	uint32_t class = attr->type == RNIC_FLOW_ALL_DEFAULT ? 2 :
			 attr->type == RNIC_FLOW_MC_DEFAULT  ? 1 :
							       0;

	return class << 16 | attr->priority;
}

static void set_attr(struct rnic_flow *flow, const struct rnic_flow_attr *attr)
{
	flow->attr = *attr;
	flow->rank = rank_of(attr);
	if (attr->type != RNIC_FLOW_MC_DEFAULT)
		return;
	/* The first bit of an address on the wire says "group". */
	flow->attr.value.outer.dst_mac[0] |= 1;
	flow->attr.mask.outer.dst_mac[0] |= 1;
}

int rnic_flow_create(struct rnic *r, uint32_t ctx,
		     const struct rnic_flow_attr *attr, uint32_t *flow)
{
	struct rnic_qp *qp = rnic_qp_get(r, attr->qpn);
	struct rnic_flow *f;
	uint32_t index, tag;
	int err;

	if (!qp || qp->ctx != ctx || !attr_ok(r, ctx, qp, attr))
		return EINVAL;
	if (qp->init.type == RNIC_QPT_UD)
		return EOPNOTSUPP; /* others may */
	if (qp->init.type != RNIC_QPT_RAW_PACKET &&
	    qp->init.type != RNIC_QPT_HASH)
		return EINVAL;
	/* The lowest, so that senders have few to look at. */
	r->sh->flows.next = 0;
	err = rnic_pool_take(r, &r->sh->flows, RNIC_MAX_FLOW, flow_live,
			     &index);
	if (err)
		return err;
	f = &r->sh->flow[index];
	tag = (SF_KEY_TAG(f->last) + 1) & ((1u << SF_KEY_TAG_BITS) - 1);
	*flow = f->last = index << SF_KEY_TAG_BITS | tag;
	f->live = 1;
	f->ctx = ctx;
	f->dev = qp->init.dev;
	set_attr(f, attr);
	qp->users++;
	if (attr->counters)
		r->sh->flow_count[attr->counters].users++;
	store_release(&f->handle, *flow);
	return 0;
}

int rnic_flow_destroy(struct rnic *r, uint32_t ctx, uint32_t flow)
{
	uint32_t index = SF_KEY_INDEX(flow), counters;
	struct rnic_flow *f = &r->sh->flow[index % RNIC_MAX_FLOW];
	struct rnic_qp *qp;

	if (index >= RNIC_MAX_FLOW || !f->live || f->last != flow ||
	    f->ctx != ctx)
		return EINVAL;
	__atomic_store_n(&f->handle, 0, __ATOMIC_SEQ_CST);
	f->live = 0;
	counters = f->attr.counters;
	qp = rnic_qp_get(r, f->attr.qpn);
	if (qp)
		qp->users--;
	if (counters && counters < RNIC_MAX_FLOW_COUNTERS)
		r->sh->flow_count[counters].users--;
	r->sh->flows.used--;
	while (r->sh->flows.high && (r->sh->flows.high == 1 ||
				     !r->sh->flow[r->sh->flows.high - 1].live))
		r->sh->flows.high--;
	return 0;
}

/* ---- counters of rules ---------------------------------------------- */

static bool flow_counters_live(const struct rnic *r, uint32_t i)
{
	return i == 0 || r->sh->flow_count[i].live;
}

int rnic_flow_counters_create(struct rnic *r, uint32_t ctx, uint32_t dev,
			      uint32_t *id)
{
	int err;

	if (dev >= r->sh->devices)
		return EINVAL;
	err = rnic_pool_take(r, &r->sh->flow_counters, RNIC_MAX_FLOW_COUNTERS,
			     flow_counters_live, id);
	if (!err)
		r->sh->flow_count[*id] = (struct rnic_flow_counters){
			.live = 1, .ctx = ctx, .dev = dev};
	return err;
}

static struct rnic_flow_counters *counters_of(struct rnic *r, uint32_t ctx,
					      uint32_t id)
{
	struct rnic_flow_counters *c =
		&r->sh->flow_count[id % RNIC_MAX_FLOW_COUNTERS];

	return id < RNIC_MAX_FLOW_COUNTERS && c->live && c->ctx == ctx ? c :
									 NULL;
}

int rnic_flow_counters_read(struct rnic *r, uint32_t ctx, uint32_t id,
			    struct rnic_flow_count *count)
{
	const struct rnic_flow_counters *c = counters_of(r, ctx, id);

	if (!c || !c->users)
		return EINVAL;
	count->packets = load_relaxed(&c->count.packets);
	count->bytes = load_relaxed(&c->count.bytes);
	return 0;
}

int rnic_flow_counters_destroy(struct rnic *r, uint32_t ctx, uint32_t id)
{
	struct rnic_flow_counters *c = counters_of(r, ctx, id);

	if (!c)
		return EINVAL;
	if (c->users)
		return EBUSY;
	c->live = 0;
	r->sh->flow_counters.used--;
	return 0;
}

/* ---- receive-side scaling ------------------------------------------- */

static bool wq_table_live(const struct rnic *r, uint32_t i)
{
	return i == 0 || r->sh->wq_table[i].live;
}

static struct rnic_qp *wq_of(const struct rnic *r, uint32_t ctx, uint32_t wqn)
{
	struct rnic_qp *wq = rnic_qp_get(r, wqn);

	return wq && wq->ctx == ctx && wq->init.type == RNIC_QPT_WQ ? wq : NULL;
}

const struct rnic_wq_table *rnic_wq_table_of(const struct rnic *r, uint32_t ctx,
					     uint32_t table)
{
	const struct rnic_wq_table *t =
		&r->sh->wq_table[table % RNIC_MAX_WQ_TABLE];

	return table && table < RNIC_MAX_WQ_TABLE && load_acquire(&t->live) &&
			       t->ctx == ctx ?
		       t :
		       NULL;
}

int rnic_wq_table_create(struct rnic *r, uint32_t ctx,
			 const struct rnic_wq_table_attr *attr, uint32_t *table)
{
	struct rnic_wq_table *t;
	uint32_t i;
	int err;

	if (attr->log_size > RNIC_MAX_LOG_WQ_TABLE)
		return EINVAL;
	for (i = 0; i < 1u << attr->log_size; i++)
		if (!wq_of(r, ctx, attr->wqn[i]))
			return EINVAL;
	err = rnic_pool_take(r, &r->sh->wq_tables, RNIC_MAX_WQ_TABLE,
			     wq_table_live, table);
	if (err)
		return err;
	t = &r->sh->wq_table[*table];
	t->ctx = ctx;
	t->users = 0;
	t->attr = *attr;
	for (i = 0; i < 1u << attr->log_size; i++)
		wq_of(r, ctx, attr->wqn[i])->users++;
	store_release(&t->live, 1);
	return 0;
}

int rnic_wq_table_destroy(struct rnic *r, uint32_t ctx, uint32_t table)
{
	struct rnic_wq_table *t = &r->sh->wq_table[table % RNIC_MAX_WQ_TABLE];
	struct rnic_qp *wq;
	uint32_t i;

	if (!rnic_wq_table_of(r, ctx, table))
		return EINVAL;
	if (t->users)
		return EBUSY;
	store_release(&t->live, 0);
	for (i = 0; i < 1u << t->attr.log_size; i++) {
		wq = wq_of(r, ctx, t->attr.wqn[i]);
		if (wq)
			wq->users--;
	}
	r->sh->wq_tables.used--;
	return 0;
}

struct rnic_qp *rnic_hash_pick(const struct rnic *r, const struct rnic_qp *qp,
			       const struct rnic_frame *frame)
{
	const struct rnic_wq_table *t =
		rnic_wq_table_of(r, qp->ctx, qp->init.hash.table);
	uint32_t mask, wqn;

	if (!t)
		return NULL;
	mask = (1u << (t->attr.log_size % (RNIC_MAX_LOG_WQ_TABLE + 1))) - 1;
	wqn = t->attr.wqn[rnic_frame_hash(frame, &qp->init.hash) & mask];
	return wq_of(r, qp->ctx, wqn);
}

int rnic_wq_modify(struct rnic *r, uint32_t ctx, uint32_t wqn, uint32_t from,
		   uint32_t to)
{
	static const uint8_t state[] = {
		[RNIC_WQ_RESET] = RNIC_RESET,
		[RNIC_WQ_READY] = RNIC_RTR,
		[RNIC_WQ_ERR] = RNIC_ERR,
	};
	struct rnic_qp_attr attr = {0};
	struct rnic_qp *wq = wq_of(r, ctx, wqn);
	uint32_t mask = RNIC_QP_STATE;

	if (!wq || to > RNIC_WQ_ERR || (from != ~0u && from > RNIC_WQ_ERR))
		return EINVAL;
	attr.state = state[to];
	if (from != ~0u) {
		attr.cur_state = state[from];
		mask |= RNIC_QP_CUR_STATE;
	}
	return rnic_qp_change(r, wq, &attr, mask);
}

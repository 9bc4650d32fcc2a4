/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Address handles and multicast groups (IBTA vol. 1, 11.2.2, 10.5). */
#include "rnic/internal.h"

static bool ah_live(const struct rnic *r, uint32_t i)
{
	return i == 0 || r->sh->ah[i].live;
}

static uint32_t ah_devices(const struct rnic *r, const struct rnic_ah *ah)
{
	return rnic_port_active(r, ah->dev, ah->av.port_num) ?
		       rnic_av_devices(r, &ah->av) :
		       0;
}

void rnic_ah_paths_changed(struct rnic *r)
{
	uint32_t i;

	for (i = 0; i < r->sh->ahs.high && i < RNIC_MAX_AH; i++)
		if (r->sh->ah[i].live)
			store_relaxed(&r->sh->ah[i].devs,
				      ah_devices(r, &r->sh->ah[i]));
}

int rnic_ah_create(struct rnic *r, uint32_t ctx, uint32_t dev, uint32_t pdn,
		   const struct rnic_av *av, uint32_t *handle)
{
	struct rnic_pd *pd = &r->sh->pd[pdn % RNIC_MAX_PD];
	uint32_t index, tag;
	struct rnic_ah *ah;
	int err;

	if (dev >= r->sh->devices || pdn >= RNIC_MAX_PD || !pd->live ||
	    pd->ctx != ctx || !av->port_num || !rnic_av_ok(r, dev, av))
		return EINVAL;
	err = rnic_pool_take(r, &r->sh->ahs, RNIC_MAX_AH, ah_live, &index);
	if (err)
		return err;
	ah = &r->sh->ah[index];
	tag = (SF_KEY_TAG(ah->last) + 1) & ((1u << SF_KEY_TAG_BITS) - 1);
	*handle = ah->last = index << SF_KEY_TAG_BITS | tag;
	ah->live = 1;
	ah->pdn = pdn;
	ah->ctx = ctx;
	ah->dev = dev;
	ah->av = *av;
	ah->devs = ah_devices(r, ah);
	pd->users++;
	store_release(&ah->handle, *handle);
	return 0;
}

int rnic_ah_destroy(struct rnic *r, uint32_t ctx, uint32_t handle)
{
	uint32_t index = SF_KEY_INDEX(handle);
	struct rnic_ah *ah = &r->sh->ah[index % RNIC_MAX_AH];

	if (index >= RNIC_MAX_AH || !ah->live || ah->last != handle ||
	    ah->ctx != ctx)
		return EINVAL;
	__atomic_store_n(&ah->handle, 0, __ATOMIC_SEQ_CST);
	ah->live = 0;
	r->sh->pd[ah->pdn % RNIC_MAX_PD].users--;
	r->sh->ahs.used--;
	return 0;
}

bool rnic_ah_get(const struct rnic *r, const struct rnic_qp *qp,
		 uint32_t handle, struct rnic_ah *copy, uint32_t *syndrome)
{
	uint32_t index = SF_KEY_INDEX(handle);
	const struct rnic_ah *ah = &r->sh->ah[index % RNIC_MAX_AH];

	*syndrome = SF_SYN_KEY;
	if (index >= RNIC_MAX_AH || !handle ||
	    load_acquire(&ah->handle) != handle)
		return false;
	*copy = *ah;
	/* It is destroyed without a lock: was it this one all the time? */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (load_relaxed(&ah->handle) != handle)
		return false;
	*syndrome = SF_SYN_PD;
	return copy->pdn == qp->init.pdn;
}

/* ---- multicast ------------------------------------------------------ */

static bool mcast_live(const struct rnic *r, uint32_t i)
{
	return r->sh->mcast[i].qpn != 0;
}

static struct rnic_mcast *find(struct rnic *r, uint32_t qpn,
			       const uint8_t mgid[16], uint32_t mlid)
{
	uint32_t i;

	for (i = 0; i < r->sh->mcasts.high; i++) {
		struct rnic_mcast *m = &r->sh->mcast[i];

		if (m->qpn == qpn && m->mlid == mlid &&
		    !memcmp(m->mgid, mgid, 16))
			return m;
	}
	return NULL;
}

/* RoCEv2 writes 224.0.0.0/4 as ::ffff:224.0.0.0/100. */
static bool is_ipv4_group(const uint8_t mgid[16])
{
	static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

	return !memcmp(mgid, prefix, sizeof(prefix)) && mgid[12] >> 4 == 0xe;
}

static bool group_ok(const struct rnic *r, const struct rnic_qp *qp,
		     const uint8_t mgid[16], uint32_t mlid)
{
	const struct rnic_port_info *port =
		&r->sh->device[qp->init.dev].port[0].info;

	if (qp->init.type != RNIC_QPT_UD)
		return false;
	if (port->link_layer == RNIC_ETHERNET)
		return mgid[0] == 0xff || is_ipv4_group(mgid);
	return mgid[0] == 0xff && mlid >= 0xc000 && mlid < 0xffff;
}

int rnic_mcast_attach(struct rnic *r, uint32_t ctx, uint32_t qpn,
		      const uint8_t mgid[16], uint32_t mlid)
{
	struct rnic_qp *qp = rnic_qp_get(r, qpn);
	struct rnic_mcast *m;
	uint32_t i;
	int err;

	if (!qp || qp->ctx != ctx || !group_ok(r, qp, mgid, mlid))
		return EINVAL;
	if (find(r, qpn, mgid, mlid))
		return 0;
	err = rnic_pool_take(r, &r->sh->mcasts, RNIC_MAX_MCAST, mcast_live, &i);
	if (err)
		return err;
	m = &r->sh->mcast[i];
	m->mlid = mlid;
	memcpy(m->mgid, mgid, 16);
	qp->mcasts++;
	store_release(&m->qpn, qpn);
	return 0;
}

static void leave(struct rnic *r, struct rnic_qp *qp, struct rnic_mcast *m)
{
	store_release(&m->qpn, 0);
	qp->mcasts--;
	r->sh->mcasts.used--;
}

int rnic_mcast_detach(struct rnic *r, uint32_t ctx, uint32_t qpn,
		      const uint8_t mgid[16], uint32_t mlid)
{
	struct rnic_qp *qp = rnic_qp_get(r, qpn);
	struct rnic_mcast *m;

	if (!qp || qp->ctx != ctx)
		return EINVAL;
	m = find(r, qpn, mgid, mlid);
	if (!m)
		return EINVAL;
	leave(r, qp, m);
	return 0;
}

void rnic_mcast_leave(struct rnic *r, struct rnic_qp *qp)
{
	uint32_t i;

	for (i = 0; qp->mcasts && i < r->sh->mcasts.high; i++)
		if (r->sh->mcast[i].qpn == qp->qpn)
			leave(r, qp, &r->sh->mcast[i]);
}

struct rnic_qp *rnic_mcast_next(const struct rnic *r, const struct rnic_ah *ah,
				uint32_t *it)
{
	const struct rnic_av *av = &ah->av;

	for (; *it < r->sh->mcasts.high && *it < RNIC_MAX_MCAST; ++*it) {
		const struct rnic_mcast *m = &r->sh->mcast[*it];
		struct rnic_qp *qp = rnic_qp_get(r, load_acquire(&m->qpn));

		if (!qp || (av->is_global ? memcmp(m->mgid, av->dgid, 16) != 0 :
					    m->mlid != av->dlid))
			continue;
		++*it;
		return qp;
	}
	return NULL;
}

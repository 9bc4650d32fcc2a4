/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * XRC domains, and the sharing of target QPs (IBTA vol. 1, annex A14).  A
 * domain is there as long as somebody has it open, a target QP likewise; who
 * made it may go first.
 */
#include "rnic/internal.h"

/* ---- domains -------------------------------------------------------- */

static bool xrcd_live(const struct rnic *r, uint32_t i)
{
	return i == 0 || r->sh->xrcd[i].live;
}

bool rnic_xrcd_live(const struct rnic *r, uint32_t xrcd)
{
	return xrcd && xrcd < RNIC_MAX_XRCD && r->sh->xrcd[xrcd].live;
}

struct rnic_xrcd *rnic_xrcd_get(const struct rnic *r, uint32_t ctx,
				uint32_t xrcd)
{
	struct rnic_xrcd *x = &r->sh->xrcd[xrcd % RNIC_MAX_XRCD];

	return rnic_xrcd_live(r, xrcd) && x->ctx == ctx ? x : NULL;
}

/* The domain of that file, or 0. */
static uint32_t domain_of(const struct rnic *r,
			  const struct rnic_xrcd_attr *attr)
{
	uint32_t i;

	if (!attr->has_file)
		return 0;
	for (i = 1; i < r->sh->xrcds.high; i++) {
		const struct rnic_xrcd *x = &r->sh->xrcd[i];

		if (x->live && x->has_file && x->dev == attr->dev &&
		    x->fs == attr->fs && x->ino == attr->ino)
			return x->domain;
	}
	return 0;
}

int rnic_xrcd_open(struct rnic *r, uint32_t ctx,
		   const struct rnic_xrcd_attr *attr, uint32_t *xrcd)
{
	uint32_t domain = domain_of(r, attr);
	int err;

	if (attr->dev >= r->sh->devices || (domain && attr->exclusive))
		return EINVAL;
	if (!domain && !attr->create)
		return EAGAIN;
	err = rnic_pool_take(r, &r->sh->xrcds, RNIC_MAX_XRCD, xrcd_live, xrcd);
	if (err)
		return err;
	if (!domain) {
		domain = ++r->sh->last_domain;
		if (!domain) /* means none */
			domain = ++r->sh->last_domain;
	}
	r->sh->xrcd[*xrcd] = (struct rnic_xrcd){
		.live = 1,
		.ctx = ctx,
		.dev = attr->dev,
		.domain = domain,
		.has_file = attr->has_file,
		.fs = attr->fs,
		.ino = attr->ino,
	};
	return 0;
}

int rnic_xrcd_close(struct rnic *r, uint32_t ctx, uint32_t xrcd)
{
	struct rnic_xrcd *x = rnic_xrcd_get(r, ctx, xrcd);

	if (!x)
		return EINVAL;
	if (x->users)
		return EBUSY;
	x->live = 0;
	r->sh->xrcds.used--;
	return 0;
}

/* ---- opens of target QPs -------------------------------------------- */

static bool ref_live(const struct rnic *r, uint32_t i)
{
	return r->sh->qp_ref[i].qpn != 0;
}

struct rnic_qp_ref *rnic_qp_ref_get(const struct rnic *r, uint32_t ctx,
				    uint32_t handle)
{
	uint32_t i = handle & ~RNIC_QP_REF;
	struct rnic_qp_ref *ref = &r->sh->qp_ref[i % RNIC_MAX_QP_REF];

	return handle & RNIC_QP_REF && i < RNIC_MAX_QP_REF && ref->qpn &&
			       ref->ctx == ctx ?
		       ref :
		       NULL;
}

int rnic_qp_ref_take(struct rnic *r, uint32_t ctx, uint32_t xrcd,
		     uint64_t user_handle, uint32_t *handle)
{
	uint32_t i;
	int err = rnic_pool_take(r, &r->sh->qp_refs, RNIC_MAX_QP_REF, ref_live,
				 &i);

	if (err)
		return err;
	r->sh->qp_ref[i] = (struct rnic_qp_ref){
		.ctx = ctx,
		.xrcd = xrcd,
		.user_handle = user_handle,
	};
	r->sh->xrcd[xrcd].users++;
	*handle = RNIC_QP_REF | i;
	return 0;
}

void rnic_qp_ref_drop(struct rnic *r, struct rnic_qp_ref *ref)
{
	store_release(&ref->qpn, 0);
	r->sh->xrcd[ref->xrcd % RNIC_MAX_XRCD].users--;
	r->sh->qp_refs.used--;
}

int rnic_qp_open(struct rnic *r, uint32_t ctx, uint32_t xrcd, uint32_t qpn,
		 uint64_t user_handle, uint32_t *handle)
{
	const struct rnic_xrcd *x = rnic_xrcd_get(r, ctx, xrcd);
	struct rnic_qp *qp = rnic_qp_get(r, qpn);
	int err;

	if (!x || !qp || qp->init.type != RNIC_QPT_XRC_RECV ||
	    qp->domain != x->domain)
		return EINVAL;
	err = rnic_qp_ref_take(r, ctx, xrcd, user_handle, handle);
	if (err)
		return err;
	qp->refs++;
	store_release(&r->sh->qp_ref[*handle & ~RNIC_QP_REF].qpn, qpn);
	return 0;
}

void rnic_qp_ref_raise(struct rnic *r, const struct rnic_qp *qp,
		       const struct rnic_event *event)
{
	uint32_t i;

	for (i = 0; i < r->sh->qp_refs.high && i < RNIC_MAX_QP_REF; i++) {
		struct rnic_qp_ref *ref = &r->sh->qp_ref[i];
		struct rnic_event each = *event;

		if (load_acquire(&ref->qpn) != qp->qpn)
			continue;
		each.ctx = ref->ctx;
		each.element = ref->user_handle;
		ref->async_events++;
		r->ops->event(r->host, &each);
	}
}

/* ---- the end of an SRQ ----------------------------------------------- */

bool rnic_xrc_forget_srq(struct rnic *r, uint32_t srqn)
{
	struct rnic_call call;
	uint32_t i;

	rnic_call_begin(&call, r);
	for (i = 0; i < r->sh->qps.high && i < RNIC_MAX_QP; i++) {
		struct rnic_qp *qp = &r->sh->qp[i];

		if (!load_acquire(&qp->qpn) ||
		    qp->init.type != RNIC_QPT_XRC_RECV)
			continue;
		if (!rnic_responder_lock(r, qp))
			return false;
		if (qp->resp.srqn == srqn) {
			qp->resp.fail_status = 0;
			store_release(&qp->resp.rq_done, qp->resp.rq_head);
			qp->resp.srqn = 0;
		}
		rnic_responder_unlock(&call, qp);
		rnic_call_end(&call);
	}
	return true;
}

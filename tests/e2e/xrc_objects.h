/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The objects of XRC, for what needs them next to pair.h. */
#ifndef E2E_XRC_OBJECTS_H
#define E2E_XRC_OBJECTS_H

#include "pair.h"

static inline struct ibv_xrcd *open_domain(struct end *e, int fd, int oflags)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = fd,
		.oflags = oflags,
	};

	errno = 0;
	return ibv_open_xrcd(e->ctx, &attr);
}

static inline struct ibv_srq *new_srq(struct end *e, struct ibv_xrcd *xrcd,
				      struct ibv_cq *cq, uint32_t depth)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = {.max_wr = depth, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD |
			     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_XRC,
		.xrcd = xrcd,
		.cq = cq,
		.pd = e->pd,
	};
	struct ibv_srq *srq = ibv_create_srq_ex(e->ctx, &attr);

	CHECK(srq);
	return srq;
}

static inline struct ibv_qp *new_target(struct end *e, struct ibv_xrcd *xrcd)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = xrcd,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(e->ctx, &init);

	CHECK(qp);
	return qp;
}

static inline struct ibv_qp *open_target(struct end *e, struct ibv_xrcd *xrcd,
					 uint32_t qpn)
{
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
			     IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = qpn,
		.xrcd = xrcd,
		.qp_type = IBV_QPT_XRC_RECV,
	};

	errno = 0;
	return ibv_open_qp(e->ctx, &attr);
}

static inline struct ibv_qp *new_sender(struct end *e, struct ibv_cq *cq,
					uint32_t depth)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_XRC_SEND,
		.send_cq = cq,
		.cap = {depth, 0, 1, 0, 0},
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags =
			IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE,
		.pd = e->pd,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(e->ctx, &init);

	CHECK(qp);
	return qp;
}

#endif

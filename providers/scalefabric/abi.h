/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The commands whose driver part is not empty. */
#ifndef SF_ABI_H
#define SF_ABI_H

#include <infiniband/kern-abi.h>
#include <rdma/scalefabric-abi.h>
#include <kernel-abi/scalefabric-abi.h>

DECLARE_DRV_CMD(sf_get_context, IB_USER_VERBS_CMD_GET_CONTEXT,
		scalefabric_alloc_ucontext_req,
		scalefabric_alloc_ucontext_resp);
DECLARE_DRV_CMD(sf_alloc_pd, IB_USER_VERBS_CMD_ALLOC_PD, empty,
		scalefabric_alloc_pd_resp);
DECLARE_DRV_CMD(sf_reg_mr, IB_USER_VERBS_CMD_REG_MR, scalefabric_reg_mr_req,
		empty);
DECLARE_DRV_CMD(sf_create_ah, IB_USER_VERBS_CMD_CREATE_AH, empty,
		scalefabric_create_ah_resp);
DECLARE_DRV_CMD(sf_create_cq, IB_USER_VERBS_EX_CMD_CREATE_CQ,
		scalefabric_create_cq_req, scalefabric_create_cq_resp);
DECLARE_DRV_CMD(sf_resize_cq, IB_USER_VERBS_CMD_RESIZE_CQ,
		scalefabric_resize_cq_req, scalefabric_resize_cq_resp);
DECLARE_DRV_CMD(sf_create_srq, IB_USER_VERBS_CMD_CREATE_XSRQ,
		scalefabric_create_srq_req, scalefabric_create_srq_resp);
DECLARE_DRV_CMD(sf_modify_srq, IB_USER_VERBS_CMD_MODIFY_SRQ,
		scalefabric_modify_srq_req, empty);
DECLARE_DRV_CMD(sf_create_qp, IB_USER_VERBS_CMD_CREATE_QP,
		scalefabric_create_qp_req, scalefabric_create_qp_resp);
DECLARE_DRV_CMD(sf_create_hash_qp, IB_USER_VERBS_EX_CMD_CREATE_QP,
		scalefabric_create_hash_qp_req, empty);
DECLARE_DRV_CMD(sf_create_wq, IB_USER_VERBS_EX_CMD_CREATE_WQ,
		scalefabric_create_wq_req, scalefabric_create_wq_resp);
DECLARE_DRV_CMD(sf_query_device, IB_USER_VERBS_EX_CMD_QUERY_DEVICE, empty,
		scalefabric_query_device_resp);

#endif

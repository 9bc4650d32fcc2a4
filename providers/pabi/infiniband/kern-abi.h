/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The memory that a uverbs command travels in: header, core part, driver part.
 * libibverbs is given a pointer to the whole and the sizes of both; it finds
 * the driver part behind the core part, so nothing may lie between them.
 */
#ifndef SF_PABI_KERN_ABI_H
#define SF_PABI_KERN_ABI_H

#include <assert.h>
#include <stddef.h>
#include <linux/types.h>
#include <rdma/ib_user_verbs.h>

/* "No driver part" in DECLARE_DRV_CMD(). */
struct empty {
};

struct ex_hdr {
	struct ib_uverbs_cmd_hdr hdr;
	struct ib_uverbs_ex_cmd_hdr ex_hdr;
};

/*
 * For a command number: the request as libibverbs names it, the core request
 * and response, and the unit in which the kernel counts lengths.
 */
#define SF_PABI_CMD(cmd, name, hdr_type, core_req, core_resp, unit)           \
	struct name {                                                         \
		struct hdr_type hdr;                                          \
		struct core_req core_payload;                                 \
	};                                                                    \
	typedef struct name sf_req_##cmd;                                     \
	typedef struct core_req sf_core_req_##cmd;                            \
	typedef struct core_resp sf_core_resp_##cmd;                          \
	enum {                                                                \
		sf_unit_##cmd = (unit)                                        \
	};                                                                    \
	static_assert(sizeof(struct name) == sizeof(struct hdr_type) +        \
						     sizeof(struct core_req), \
		      #name " has a hole")

#define SF_PABI_WRITE(cmd, name)                                          \
	SF_PABI_CMD(cmd, ibv_##name, ib_uverbs_cmd_hdr, ib_uverbs_##name, \
		    ib_uverbs_##name##_resp, 4)

#define SF_PABI_WRITE_EX(cmd, name)                                    \
	SF_PABI_CMD(cmd, ibv_##name##_ex, ex_hdr, ib_uverbs_ex_##name, \
		    ib_uverbs_ex_##name##_resp, 8)

/* Core structs end in a flexible array; the driver part takes its place. */
#ifdef __clang__
#pragma clang diagnostic ignored "-Wgnu-variable-sized-type-not-at-end"
#endif

/*
 * struct @name, struct @name_resp: command @cmd with the driver's request
 * @req and response @resp.  The assertions refuse a driver part that would not
 * lie right behind the core part, or whose size the kernel cannot count.
 */
#define DECLARE_DRV_CMD(name, cmd, req, resp)                                  \
	struct name {                                                          \
		sf_req_##cmd ibv_cmd;                                          \
		struct req drv_payload;                                        \
	};                                                                     \
	struct name##_resp {                                                   \
		sf_core_resp_##cmd ibv_resp;                                   \
		struct resp drv_payload;                                       \
	};                                                                     \
	static_assert(sizeof(sf_core_req_##cmd) % _Alignof(struct req) == 0 && \
			      sizeof(struct name) ==                           \
				      sizeof(sf_req_##cmd) +                   \
					      sizeof(struct req) &&            \
			      sizeof(struct name) % sf_unit_##cmd == 0,        \
		      #name ": the request is not dense");                     \
	static_assert(sizeof(sf_core_resp_##cmd) % _Alignof(struct resp) ==    \
				      0 &&                                     \
			      sizeof(struct name##_resp) ==                    \
				      sizeof(sf_core_resp_##cmd) +             \
					      sizeof(struct resp) &&           \
			      sizeof(struct name##_resp) % sf_unit_##cmd == 0, \
		      #name ": the response is not dense");

SF_PABI_WRITE(IB_USER_VERBS_CMD_GET_CONTEXT, get_context);
SF_PABI_WRITE(IB_USER_VERBS_CMD_QUERY_PORT, query_port);
SF_PABI_WRITE(IB_USER_VERBS_CMD_ALLOC_PD, alloc_pd);
SF_PABI_WRITE(IB_USER_VERBS_CMD_CREATE_AH, create_ah);
SF_PABI_WRITE(IB_USER_VERBS_CMD_REG_MR, reg_mr);
SF_PABI_WRITE(IB_USER_VERBS_CMD_REREG_MR, rereg_mr);
SF_PABI_WRITE(IB_USER_VERBS_CMD_ALLOC_MW, alloc_mw);
SF_PABI_WRITE(IB_USER_VERBS_CMD_RESIZE_CQ, resize_cq);
SF_PABI_WRITE(IB_USER_VERBS_CMD_CREATE_QP, create_qp);
SF_PABI_WRITE(IB_USER_VERBS_CMD_QUERY_QP, query_qp);
SF_PABI_WRITE(IB_USER_VERBS_CMD_QUERY_SRQ, query_srq);
SF_PABI_WRITE(IB_USER_VERBS_CMD_OPEN_XRCD, open_xrcd);
SF_PABI_CMD(IB_USER_VERBS_CMD_OPEN_QP, ibv_open_qp, ib_uverbs_cmd_hdr,
	    ib_uverbs_open_qp, ib_uverbs_create_qp_resp, 4);
SF_PABI_CMD(IB_USER_VERBS_CMD_CREATE_XSRQ, ibv_create_xsrq, ib_uverbs_cmd_hdr,
	    ib_uverbs_create_xsrq, ib_uverbs_create_srq_resp, 4);
SF_PABI_CMD(IB_USER_VERBS_CMD_MODIFY_SRQ, ibv_modify_srq, ib_uverbs_cmd_hdr,
	    ib_uverbs_modify_srq, empty, 4);
SF_PABI_CMD(IB_USER_VERBS_CMD_MODIFY_QP, ibv_modify_qp, ib_uverbs_cmd_hdr,
	    ib_uverbs_modify_qp, empty, 4);
SF_PABI_WRITE_EX(IB_USER_VERBS_EX_CMD_CREATE_CQ, create_cq);
SF_PABI_WRITE_EX(IB_USER_VERBS_EX_CMD_CREATE_QP, create_qp);
SF_PABI_WRITE_EX(IB_USER_VERBS_EX_CMD_QUERY_DEVICE, query_device);
SF_PABI_CMD(IB_USER_VERBS_EX_CMD_CREATE_WQ, ibv_create_wq, ex_hdr,
	    ib_uverbs_ex_create_wq, ib_uverbs_ex_create_wq_resp, 8);
SF_PABI_CMD(IB_USER_VERBS_EX_CMD_MODIFY_CQ, ibv_modify_cq, ex_hdr,
	    ib_uverbs_ex_modify_cq, empty, 8);
SF_PABI_CMD(IB_USER_VERBS_EX_CMD_MODIFY_WQ, ibv_modify_wq, ex_hdr,
	    ib_uverbs_ex_modify_wq, empty, 8);

/* Sizes that libibverbs 44 was measured with. */
static_assert(sizeof(struct ibv_get_context) == 16, "");
static_assert(sizeof(struct ibv_query_port) == 24, "");
static_assert(sizeof(struct ibv_alloc_pd) == 16, "");
static_assert(sizeof(struct ibv_reg_mr) == 48, "");
static_assert(sizeof(struct ibv_rereg_mr) == 56, "");
static_assert(sizeof(struct ibv_alloc_mw) == 24, "");
static_assert(sizeof(struct ibv_resize_cq) == 24, "");
static_assert(sizeof(struct ibv_create_qp) == 64, "");
static_assert(sizeof(struct ibv_query_qp) == 24, "");
static_assert(sizeof(struct ibv_create_xsrq) == 56, "");
static_assert(sizeof(struct ibv_query_srq) == 24, "");
static_assert(sizeof(struct ibv_open_xrcd) == 24, "");
static_assert(sizeof(struct ibv_open_qp) == 40, "");
static_assert(sizeof(struct ibv_modify_srq) == 24, "");
static_assert(sizeof(struct ibv_modify_qp) == 120, "");
static_assert(sizeof(struct ibv_create_cq_ex) == 56, "");
static_assert(sizeof(struct ib_uverbs_get_context_resp) == 8, "");
static_assert(sizeof(struct ib_uverbs_alloc_pd_resp) == 4, "");
static_assert(sizeof(struct ib_uverbs_create_ah_resp) == 4, "");
static_assert(sizeof(struct ib_uverbs_reg_mr_resp) == 12, "");
static_assert(sizeof(struct ib_uverbs_resize_cq_resp) == 8, "");
static_assert(sizeof(struct ib_uverbs_create_qp_resp) == 32, "");
static_assert(sizeof(struct ib_uverbs_create_srq_resp) == 16, "");
static_assert(sizeof(struct ib_uverbs_ex_create_cq_resp) == 16, "");
static_assert(sizeof(struct ib_uverbs_ex_query_device_resp) == 304, "");

#endif

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Work queues and indirection tables. */
#include "softnic/uverbs_cmd.h"

/* ---- create ---------------------------------------------------------- */

struct wq_args {
	uint64_t user_handle;
	uint64_t type;	/* enum ib_uverbs_wq_type */
	uint64_t flags; /* enum ib_uverbs_wq_flags */
	uint32_t pdn;
	uint32_t cqn;
	uint32_t max_wr; /* asked for, then granted */
	uint32_t max_sge;
};

#define WQ_FLAGS_KNOWN                                                         \
	(IB_UVERBS_WQ_FLAGS_CVLAN_STRIPPING | IB_UVERBS_WQ_FLAGS_SCATTER_FCS | \
	 IB_UVERBS_WQ_FLAGS_DELAY_DROP |                                       \
	 IB_UVERBS_WQ_FLAGS_PCI_WRITE_END_PADDING)

static int check_args(const struct wq_args *args)
{
	if (args->type != IB_UVERBS_WQT_RQ ||
	    args->flags & ~(uint64_t)WQ_FLAGS_KNOWN)
		return EINVAL;
	if (args->flags)
		return EOPNOTSUPP;
	if (args->max_wr > 1u << SF_MAX_LOG_DEPTH ||
	    args->max_sge > SF_MAX_RECV_SGE)
		return EINVAL;
	return 0;
}

static int get_create_req(const struct uverbs_cmd *c, struct wq_args *args,
			  struct scalefabric_create_wq_req *req)
{
	int err;

	err = uverbs_get_uhw(c, req, sizeof(*req));
	if (err)
		return err;
	if (req->comp_mask || req->flags)
		return EOPNOTSUPP;
	if (req->reserved[0] || req->reserved[1])
		return EINVAL;
	err = uverbs_check_mem(&req->rq);
	if (err)
		return err;
	return uverbs_recv_ring(req->log_depth, req->log_stride, &args->max_wr,
				&args->max_sge);
}

static int create_wq(struct uverbs_cmd *c, struct wq_args *args, uint32_t *wqn)
{
	struct scalefabric_create_wq_resp resp = {};
	struct scalefabric_create_wq_req driver;
	struct sfnic_req req = {};
	struct sfnic_rsp rsp;
	int err;

	err = check_args(args);
	if (!err)
		err = get_create_req(c, args, &driver);
	if (!err)
		err = uverbs_probe(c);
	if (err)
		return err;

	req.qp = (struct rnic_qp_init){
		.type = RNIC_QPT_WQ,
		.pdn = args->pdn,
		.send_cqn = args->cqn,
		.recv_cqn = args->cqn,
		.sq_log_stride = SF_SLOT_LOG_MIN, /* one slot, never used */
		.rq_log_depth = driver.log_depth,
		.rq_log_stride = driver.log_stride,
		.user_handle = args->user_handle,
	};
	err = uverbs_call(c, SFNIC_CREATE_QP, &req, &rsp);
	if (err)
		return err;
	*wqn = resp.wqn = rsp.id;
	resp.rq = (struct scalefabric_region){
		rsp.qp.mem.queues, rsp.qp.mem.queues_len, rsp.qp.mem.rq};
	resp.doorbell = (struct scalefabric_region){
		rsp.qp.mem.doorbells, RNIC_PAGE, sizeof(struct sf_doorbell)};
	resp.start = rsp.qp.mem.rq_start;
	return uverbs_put_uhw(c, &resp, sizeof(resp));
}

int uverbs_ex_create_wq(struct uverbs_cmd *c)
{
	struct ib_uverbs_ex_create_wq_resp resp = {};
	struct ib_uverbs_ex_create_wq req;
	struct wq_args args;
	int err;

	err = uverbs_request(c, &req, sizeof(req));
	if (err)
		return err;
	if (req.comp_mask || req.reserved)
		return EOPNOTSUPP;
	args = (struct wq_args){
		.user_handle = req.user_handle,
		.type = req.wq_type,
		.flags = req.create_flags,
		.pdn = req.pd_handle,
		.cqn = req.cq_handle,
		.max_wr = req.max_wr,
		.max_sge = req.max_sge,
	};
	err = create_wq(c, &args, &resp.wqn);
	if (err)
		return err;
	resp.wq_handle = resp.wqn;
	resp.max_wr = args.max_wr;
	resp.max_sge = args.max_sge;
	resp.response_length = uverbs_response_length(c, sizeof(resp));
	return uverbs_respond(c, &resp, sizeof(resp));
}

int uverbs_ioctl_create_wq(struct uverbs_cmd *c)
{
	struct uverbs_buf *a = c->attr;
	struct wq_args args = {
		.user_handle = a[UVERBS_ATTR_CREATE_WQ_USER_HANDLE].value,
		.type = a[UVERBS_ATTR_CREATE_WQ_TYPE].value,
		.flags = a[UVERBS_ATTR_CREATE_WQ_FLAGS].value,
		.pdn = a[UVERBS_ATTR_CREATE_WQ_PD_HANDLE].value,
		.cqn = a[UVERBS_ATTR_CREATE_WQ_CQ_HANDLE].value,
		.max_wr = a[UVERBS_ATTR_CREATE_WQ_MAX_WR].value,
		.max_sge = a[UVERBS_ATTR_CREATE_WQ_MAX_SGE].value,
	};
	uint32_t wqn;
	int err;

	err = create_wq(c, &args, &wqn);
	if (err)
		return err;
	c->result = wqn;
	err = uverbs_put(&a[UVERBS_ATTR_CREATE_WQ_RESP_MAX_WR], &args.max_wr,
			 sizeof(args.max_wr));
	if (!err)
		err = uverbs_put(&a[UVERBS_ATTR_CREATE_WQ_RESP_MAX_SGE],
				 &args.max_sge, sizeof(args.max_sge));
	if (!err)
		err = uverbs_put(&a[UVERBS_ATTR_CREATE_WQ_RESP_WQ_NUM], &wqn,
				 sizeof(wqn));
	return err;
}

/* ---- modify, destroy ------------------------------------------------- */

/* The kernel's enum ib_wq_attr_mask. */
enum {
	WQ_STATE = 1 << 0,
	WQ_CUR_STATE = 1 << 1,
	WQ_FLAGS = 1 << 2,
};

int uverbs_ex_modify_wq(struct uverbs_cmd *c)
{
	struct ib_uverbs_ex_modify_wq cmd;
	struct sfnic_req req = {};
	struct sfnic_rsp rsp;
	int err;

	err = uverbs_request(c, &cmd, sizeof(cmd));
	if (err)
		return err;
	if (!cmd.attr_mask ||
	    cmd.attr_mask & ~(WQ_STATE | WQ_CUR_STATE | WQ_FLAGS))
		return EINVAL;
	if (cmd.attr_mask & WQ_FLAGS && cmd.flags_mask)
		return EOPNOTSUPP;
	if (!(cmd.attr_mask & WQ_STATE))
		return EINVAL;
	req.modify_wq.wqn = cmd.wq_handle;
	req.modify_wq.from =
		cmd.attr_mask & WQ_CUR_STATE ? cmd.curr_wq_state : ~0u;
	req.modify_wq.to = cmd.wq_state;
	return uverbs_call(c, SFNIC_MODIFY_WQ, &req, &rsp);
}

int uverbs_ex_destroy_wq(struct uverbs_cmd *c)
{
	struct ib_uverbs_ex_destroy_wq_resp resp = {};
	struct ib_uverbs_ex_destroy_wq req;
	int err;

	err = uverbs_request(c, &req, sizeof(req));
	if (err)
		return err;
	if (req.comp_mask)
		return EOPNOTSUPP;
	err = uverbs_destroy_queues(c, req.wq_handle, true,
				    &resp.events_reported);
	if (err)
		return err;
	resp.response_length = uverbs_response_length(c, sizeof(resp));
	return uverbs_respond(c, &resp, sizeof(resp));
}

int uverbs_ioctl_destroy_wq(struct uverbs_cmd *c)
{
	uint32_t events;
	int err;

	err = uverbs_destroy_queues(
		c, c->attr[UVERBS_ATTR_DESTROY_WQ_HANDLE].value, true, &events);
	if (err)
		return err;
	return uverbs_put(&c->attr[UVERBS_ATTR_DESTROY_WQ_RESP], &events,
			  sizeof(events));
}

/* ---- indirection tables ---------------------------------------------- */

static int get_table(const struct uverbs_cmd *c,
		     struct rnic_wq_table_attr *attr)
{
	const struct uverbs_buf *in = &c->attr[UVERBS_ATTR_CORE_IN];
	struct ib_uverbs_ex_create_rwq_ind_table req;
	uint32_t size, used;
	int err;

	err = uverbs_copy_in(&req, in->addr, sizeof(req));
	if (err)
		return err;
	if (req.comp_mask)
		return EOPNOTSUPP;
	if (req.log_ind_tbl_size > RNIC_MAX_LOG_WQ_TABLE)
		return EINVAL;
	attr->log_size = req.log_ind_tbl_size;
	size = sizeof(attr->wqn[0]) << attr->log_size;
	used = sizeof(req) + size;
	if (used > in->len)
		return ENOSPC;
	err = uverbs_copy_in(attr->wqn, in->addr + sizeof(req), size);
	if (err)
		return err;
	err = uverbs_check_zero(in->addr + used, in->len - used);
	return err == EINVAL ? EOPNOTSUPP : err;
}

int uverbs_ex_create_wq_table(struct uverbs_cmd *c)
{
	struct ib_uverbs_ex_create_rwq_ind_table_resp resp = {};
	struct sfnic_req req = {};
	struct sfnic_rsp rsp;
	int err;

	err = get_table(c, &req.wq_table);
	if (!err)
		err = uverbs_get_uhw(c, NULL, 0);
	if (!err)
		err = uverbs_probe(c);
	if (!err)
		err = uverbs_call(c, SFNIC_CREATE_WQ_TABLE, &req, &rsp);
	if (err)
		return err;
	resp.ind_tbl_handle = resp.ind_tbl_num = rsp.id;
	resp.response_length = uverbs_response_length(c, sizeof(resp));
	return uverbs_respond(c, &resp, sizeof(resp));
}

int uverbs_ex_destroy_wq_table(struct uverbs_cmd *c)
{
	struct ib_uverbs_ex_destroy_rwq_ind_table req;
	struct sfnic_rsp rsp;
	int err;

	err = uverbs_request(c, &req, sizeof(req));
	if (err)
		return err;
	if (req.comp_mask)
		return EOPNOTSUPP;
	return uverbs_call_id(c, SFNIC_DESTROY_WQ_TABLE, req.ind_tbl_handle,
			      &rsp);
}

int uverbs_ioctl_destroy_wq_table(struct uverbs_cmd *c)
{
	struct sfnic_rsp rsp;

	return uverbs_call_id(
		c, SFNIC_DESTROY_WQ_TABLE,
		c->attr[UVERBS_ATTR_DESTROY_RWQ_IND_TBL_HANDLE].value, &rsp);
}

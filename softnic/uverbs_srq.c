// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Shared receive queues. */
#include "softnic/uverbs_cmd.h"

/* ---- create ---------------------------------------------------------- */

struct srq_args {
	uint64_t user_handle;
	uint64_t type; /* enum ib_uverbs_srq_type */
	uint32_t pdn;
	uint32_t xrcd; /* XRC only, as cqn */
	uint32_t cqn;
	uint32_t max_wr; /* asked for, then granted */
	uint32_t max_sge;
};

/* The limit at create means nothing (ibv_create_srq(3)). */
static int check_args(const struct srq_args *args)
{
	switch (args->type) {
	case IB_UVERBS_SRQT_BASIC:
		if (args->xrcd || args->cqn)
			return EINVAL;
		break;
	case IB_UVERBS_SRQT_XRC:
		if (!args->xrcd || !args->cqn)
			return EINVAL;
		break;
	case IB_UVERBS_SRQT_TM:
		return EOPNOTSUPP;
	default:
		return EINVAL;
	}
	if (!args->max_wr || args->max_wr > 1u << SF_MAX_LOG_DEPTH ||
	    args->max_sge > SF_MAX_RECV_SGE)
		return EINVAL;
	return 0;
}

static uint32_t stride_sges(uint32_t log_stride)
{
	return ((1u << log_stride) - sizeof(struct sf_rq_desc)) /
	       sizeof(struct sf_sge);
}

int uverbs_recv_ring(uint32_t log_depth, uint32_t log_stride, uint32_t *max_wr,
		     uint32_t *max_sge)
{
	if (log_depth > SF_MAX_LOG_DEPTH || log_stride < SF_RQ_LOG_MIN ||
	    log_stride > SF_RQ_LOG_MAX || *max_wr > 1u << log_depth ||
	    *max_sge > stride_sges(log_stride))
		return EINVAL;
	*max_wr = 1u << log_depth;
	*max_sge = stride_sges(log_stride);
	return 0;
}

static int get_create_req(const struct uverbs_cmd *c, struct srq_args *args,
			  struct scalefabric_create_srq_req *req)
{
	int err;

	err = uverbs_get_uhw(c, req, sizeof(*req));
	if (err)
		return err;
	if (req->comp_mask || req->flags)
		return EOPNOTSUPP;
	if (req->reserved[0] || req->reserved[1])
		return EINVAL;
	err = uverbs_check_mem(&req->ring);
	if (err)
		return err;
	return uverbs_recv_ring(req->log_depth, req->log_stride, &args->max_wr,
				&args->max_sge);
}

static uint64_t whole_pages(uint64_t len)
{
	return (len + RNIC_PAGE - 1) & ~(RNIC_PAGE - 1ull);
}

static int create_srq(struct uverbs_cmd *c, struct srq_args *args,
		      uint32_t *srqn)
{
	struct scalefabric_create_srq_resp resp = {};
	struct scalefabric_create_srq_req driver;
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

	req.srq.pdn = args->pdn;
	req.srq.xrcd = args->xrcd;
	req.srq.cqn = args->cqn;
	req.srq.log_depth = driver.log_depth;
	req.srq.log_stride = driver.log_stride;
	req.srq.user_handle = args->user_handle;
	err = uverbs_call(c, SFNIC_CREATE_SRQ, &req, &rsp);
	if (err)
		return err;
	*srqn = resp.srqn = rsp.id;
	resp.ring.mmap_key = rsp.srq.mem.ring;
	resp.ring.length = whole_pages(rsp.srq.mem.ring_len);
	resp.doorbell.mmap_key = rsp.srq.mem.doorbell;
	resp.doorbell.length = RNIC_PAGE;
	resp.start = rsp.srq.mem.start;
	return uverbs_put_uhw(c, &resp, sizeof(resp));
}

int uverbs_create_srq(struct uverbs_cmd *c)
{
	struct ib_uverbs_create_srq_resp resp = {};
	struct ib_uverbs_create_srq req;
	struct srq_args args = {.type = IB_UVERBS_SRQT_BASIC};
	int err;

	err = uverbs_request(c, &req, sizeof(req));
	if (err)
		return err;
	args.user_handle = req.user_handle;
	args.pdn = req.pd_handle;
	args.max_wr = req.max_wr;
	args.max_sge = req.max_sge;
	err = create_srq(c, &args, &resp.srq_handle);
	if (err)
		return err;
	resp.max_wr = args.max_wr;
	resp.max_sge = args.max_sge;
	return uverbs_respond(c, &resp, sizeof(resp));
}

int uverbs_create_xsrq(struct uverbs_cmd *c)
{
	struct ib_uverbs_create_srq_resp resp = {};
	struct ib_uverbs_create_xsrq req;
	struct srq_args args = {};
	int err;

	err = uverbs_request(c, &req, sizeof(req));
	if (err)
		return err;
	args.type = req.srq_type;
	args.user_handle = req.user_handle;
	args.pdn = req.pd_handle;
	args.max_wr = req.max_wr;
	args.max_sge = req.max_sge;
	if (req.srq_type == IB_UVERBS_SRQT_XRC) {
		args.xrcd = req.xrcd_handle;
		args.cqn = req.cq_handle;
	}
	err = create_srq(c, &args, &resp.srq_handle);
	if (err)
		return err;
	resp.srqn = resp.srq_handle;
	resp.max_wr = args.max_wr;
	resp.max_sge = args.max_sge;
	return uverbs_respond(c, &resp, sizeof(resp));
}

int uverbs_ioctl_create_srq(struct uverbs_cmd *c)
{
	struct uverbs_buf *a = c->attr;
	struct srq_args args = {
		.user_handle = a[UVERBS_ATTR_CREATE_SRQ_USER_HANDLE].value,
		.type = a[UVERBS_ATTR_CREATE_SRQ_TYPE].value,
		.pdn = a[UVERBS_ATTR_CREATE_SRQ_PD_HANDLE].value,
		.xrcd = a[UVERBS_ATTR_CREATE_SRQ_XRCD_HANDLE].value,
		.cqn = a[UVERBS_ATTR_CREATE_SRQ_CQ_HANDLE].value,
		.max_wr = a[UVERBS_ATTR_CREATE_SRQ_MAX_WR].value,
		.max_sge = a[UVERBS_ATTR_CREATE_SRQ_MAX_SGE].value,
	};
	uint32_t srqn;
	int err;

	err = create_srq(c, &args, &srqn);
	if (err)
		return err;
	c->result = srqn;
	err = uverbs_put(&a[UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR], &args.max_wr,
			 sizeof(args.max_wr));
	if (!err)
		err = uverbs_put(&a[UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE],
				 &args.max_sge, sizeof(args.max_sge));
	if (!err)
		err = uverbs_put(&a[UVERBS_ATTR_CREATE_SRQ_RESP_SRQ_NUM], &srqn,
				 sizeof(srqn));
	return err;
}

/* ---- modify, query --------------------------------------------------- */

/* Values of enum ibv_srq_attr_mask. */
#define SRQ_MAX_WR (1u << 0)
#define SRQ_LIMIT (1u << 1)

static int get_resize_req(const struct uverbs_cmd *c,
			  const struct ib_uverbs_modify_srq *cmd,
			  struct scalefabric_modify_srq_req *req)
{
	size_t i;
	int err;

	err = uverbs_get_uhw(c, req, sizeof(*req));
	if (err)
		return err;
	if (req->comp_mask)
		return EOPNOTSUPP;
	for (i = 0; i < sizeof(req->reserved); i++)
		if (req->reserved[i])
			return EINVAL;
	err = uverbs_check_mem(&req->ring);
	if (err)
		return err;
	if (cmd->attr_mask & SRQ_LIMIT || !cmd->max_wr ||
	    req->log_depth > SF_MAX_LOG_DEPTH ||
	    cmd->max_wr > 1u << req->log_depth)
		return EINVAL;
	return 0;
}

static int resize_srq(const struct uverbs_cmd *c,
		      const struct ib_uverbs_modify_srq *cmd)
{
	struct scalefabric_modify_srq_resp resp = {};
	struct scalefabric_modify_srq_req driver;
	struct sfnic_req req = {};
	struct sfnic_rsp rsp;
	int err;

	err = get_resize_req(c, cmd, &driver);
	/* Can it be written?  Later is too late. */
	if (!err)
		err = uverbs_copy_out(driver.response, &resp, sizeof(resp));
	if (err)
		return err;
	req.modify_srq.srqn = cmd->srq_handle;
	req.modify_srq.resize = 1;
	req.modify_srq.log_depth = driver.log_depth;
	err = uverbs_call(c, SFNIC_MODIFY_SRQ, &req, &rsp);
	if (err)
		return err;
	resp.ring.mmap_key = rsp.srq.mem.ring;
	resp.ring.length = whole_pages(rsp.srq.mem.ring_len);
	return uverbs_copy_out(driver.response, &resp, sizeof(resp));
}

int uverbs_modify_srq(struct uverbs_cmd *c)
{
	struct ib_uverbs_modify_srq cmd;
	struct sfnic_req req = {};
	struct sfnic_rsp rsp;
	int err;

	err = uverbs_request(c, &cmd, sizeof(cmd));
	if (err)
		return err;
	if (cmd.attr_mask & ~(SRQ_MAX_WR | SRQ_LIMIT))
		return EINVAL;
	if (cmd.attr_mask & SRQ_MAX_WR)
		return resize_srq(c, &cmd);
	req.modify_srq.srqn = cmd.srq_handle;
	req.modify_srq.limit = cmd.srq_limit;
	if (!cmd.attr_mask)
		return uverbs_call_id(c, SFNIC_QUERY_SRQ, cmd.srq_handle, &rsp);
	return uverbs_call(c, SFNIC_MODIFY_SRQ, &req, &rsp);
}

int uverbs_query_srq(struct uverbs_cmd *c)
{
	struct ib_uverbs_query_srq_resp resp = {};
	struct ib_uverbs_query_srq cmd;
	struct sfnic_rsp rsp;
	int err;

	err = uverbs_request(c, &cmd, sizeof(cmd));
	if (!err)
		err = uverbs_get_uhw(c, NULL, 0);
	if (!err)
		err = uverbs_call_id(c, SFNIC_QUERY_SRQ, cmd.srq_handle, &rsp);
	if (err)
		return err;
	resp.max_wr = 1u << rsp.srq.attr.log_depth;
	resp.max_sge = stride_sges(rsp.srq.attr.log_stride);
	resp.srq_limit = rsp.srq.attr.limit;
	return uverbs_respond(c, &resp, sizeof(resp));
}

/* ---- destroy --------------------------------------------------------- */

static int destroy_srq(const struct uverbs_cmd *c, uint32_t srqn,
		       uint32_t *events)
{
	struct uverbs_events unread;
	struct sfnic_rsp rsp;
	int err;

	err = uverbs_probe(c);
	if (!err)
		err = uverbs_call_id(c, SFNIC_QUERY_SRQ, srqn, &rsp);
	if (err)
		return err;
	unread.user_handle = rsp.srq.attr.user_handle;
	unread.async_fd = c->ops->async_read_fd(c->ctx);
	return uverbs_destroy(c, SFNIC_DESTROY_SRQ, srqn, &unread, NULL,
			      events);
}

int uverbs_destroy_srq(struct uverbs_cmd *c)
{
	struct ib_uverbs_destroy_srq_resp resp;
	struct ib_uverbs_destroy_srq req;
	int err;

	err = uverbs_request(c, &req, sizeof(req));
	if (!err)
		err = destroy_srq(c, req.srq_handle, &resp.events_reported);
	return err ? err : uverbs_respond(c, &resp, sizeof(resp));
}

int uverbs_ioctl_destroy_srq(struct uverbs_cmd *c)
{
	struct ib_uverbs_destroy_srq_resp resp;
	int err;

	err = destroy_srq(c, c->attr[UVERBS_ATTR_DESTROY_SRQ_HANDLE].value,
			  &resp.events_reported);
	if (err)
		return err;
	return uverbs_put(&c->attr[UVERBS_ATTR_DESTROY_SRQ_RESP], &resp,
			  sizeof(resp));
}

/* ---- a doorbell that did not take the short way ---------------------- */

int uverbs_post_srq_recv(struct uverbs_cmd *c)
{
	struct ib_uverbs_post_srq_recv_resp resp = {};
	struct ib_uverbs_post_srq_recv req;
	int err;

	err = uverbs_copy_in(&req, c->attr[UVERBS_ATTR_CORE_IN].addr,
			     sizeof(req));
	if (err)
		return err;
	/* Work requests go on the ring; this command only rings. */
	if (req.wr_count || req.sge_count)
		return EOPNOTSUPP;
	c->ops->srq_ring(req.srq_handle);
	return uverbs_respond(c, &resp, sizeof(resp));
}

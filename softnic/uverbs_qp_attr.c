// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* MODIFY_QP and QUERY_QP: the attributes of a queue pair, both ways. */
#include "softnic/uverbs_cmd.h"

/* The mask's bits and the values of states are the ones of the ABI. */
#define LEGACY_MASK ((RNIC_QP_DEST_QPN << 1) - 1)
#define EXTENDED_MASK ((RNIC_QP_RATE_LIMIT << 1) - 1)

static void take_dest(struct rnic_av *av, const struct ib_uverbs_qp_dest *dest)
{
	*av = (struct rnic_av){
		.flow_label = dest->flow_label,
		.dlid = dest->dlid,
		.is_global = dest->is_global,
		.sgid_index = dest->sgid_index,
		.hop_limit = dest->hop_limit,
		.traffic_class = dest->traffic_class,
		.sl = dest->sl,
		.src_path_bits = dest->src_path_bits,
		.static_rate = dest->static_rate,
		.port_num = dest->port_num,
	};
	memcpy(av->dgid, dest->dgid, sizeof(av->dgid));
}

static void give_dest(struct ib_uverbs_qp_dest *dest, const struct rnic_av *av)
{
	*dest = (struct ib_uverbs_qp_dest){
		.flow_label = av->flow_label,
		.dlid = av->dlid,
		.sgid_index = av->sgid_index,
		.hop_limit = av->hop_limit,
		.traffic_class = av->traffic_class,
		.sl = av->sl,
		.src_path_bits = av->src_path_bits,
		.static_rate = av->static_rate,
		.is_global = av->is_global,
		.port_num = av->port_num,
	};
	memcpy(dest->dgid, av->dgid, sizeof(dest->dgid));
}

/* Programs give a QP the flags of its regions: these say nothing about one. */
#define OF_REGIONS                                                \
	(IB_UVERBS_ACCESS_MW_BIND | IB_UVERBS_ACCESS_ZERO_BASED | \
	 IB_UVERBS_ACCESS_ON_DEMAND | IB_UVERBS_ACCESS_HUGETLB |  \
	 IB_UVERBS_ACCESS_OPTIONAL_RANGE)

static void take_attr(struct rnic_qp_attr *attr,
		      const struct ib_uverbs_modify_qp *cmd)
{
	*attr = (struct rnic_qp_attr){
		.state = cmd->qp_state,
		.cur_state = cmd->cur_qp_state,
		.path_mtu = cmd->path_mtu,
		.path_mig_state = cmd->path_mig_state,
		.qkey = cmd->qkey,
		.rq_psn = cmd->rq_psn,
		.sq_psn = cmd->sq_psn,
		.dest_qpn = cmd->dest_qp_num,
		.access = cmd->qp_access_flags & ~OF_REGIONS,
		.pkey_index = cmd->pkey_index,
		.alt_pkey_index = cmd->alt_pkey_index,
		.en_sqd_notify = cmd->en_sqd_async_notify,
		.max_rd_atomic = cmd->max_rd_atomic,
		.max_dest_rd_atomic = cmd->max_dest_rd_atomic,
		.min_rnr_timer = cmd->min_rnr_timer,
		.port_num = cmd->port_num,
		.timeout = cmd->timeout,
		.retry_cnt = cmd->retry_cnt,
		.rnr_retry = cmd->rnr_retry,
		.alt_port_num = cmd->alt_port_num,
		.alt_timeout = cmd->alt_timeout,
	};
	take_dest(&attr->av, &cmd->dest);
	take_dest(&attr->alt_av, &cmd->alt_dest);
}

static int modify_qp(struct uverbs_cmd *c,
		     const struct ib_uverbs_modify_qp *cmd, uint32_t rate_limit)
{
	struct sfnic_req req = {};
	struct sfnic_rsp rsp;

	req.modify_qp.qpn = cmd->qp_handle;
	req.modify_qp.mask = cmd->attr_mask;
	take_attr(&req.modify_qp.attr, cmd);
	req.modify_qp.attr.rate_limit = rate_limit;
	return uverbs_call(c, SFNIC_MODIFY_QP, &req, &rsp);
}

int uverbs_modify_qp(struct uverbs_cmd *c)
{
	struct ib_uverbs_modify_qp cmd;
	int err;

	err = uverbs_request(c, &cmd, sizeof(cmd));
	if (err)
		return err;
	if (cmd.attr_mask & ~LEGACY_MASK)
		return EOPNOTSUPP;
	return modify_qp(c, &cmd, 0);
}

int uverbs_ex_modify_qp(struct uverbs_cmd *c)
{
	uint32_t room = c->attr[UVERBS_ATTR_CORE_IN].len;
	struct ib_uverbs_ex_modify_qp_resp resp = {};
	struct ib_uverbs_ex_modify_qp cmd;
	int err;

	err = uverbs_request(c, &cmd, sizeof(cmd));
	if (!err)
		err = uverbs_get_uhw(c, NULL, 0);
	if (err)
		return err;
	if (cmd.base.attr_mask & ~EXTENDED_MASK)
		return EOPNOTSUPP;
	if (cmd.base.attr_mask & RNIC_QP_RATE_LIMIT &&
	    room < offsetof(typeof(cmd), reserved))
		return EINVAL;
	/* Nothing here holds packets back. */
	if (cmd.base.attr_mask & RNIC_QP_RATE_LIMIT && cmd.rate_limit)
		return EOPNOTSUPP;
	err = modify_qp(c, &cmd.base, cmd.rate_limit);
	if (err)
		return err;
	resp.response_length = uverbs_response_length(c, sizeof(resp));
	return uverbs_respond(c, &resp, sizeof(resp));
}

static void give_attr(struct ib_uverbs_query_qp_resp *resp,
		      const struct rnic_qp_attr *attr,
		      const struct rnic_qp_init *init)
{
	*resp = (struct ib_uverbs_query_qp_resp){
		.max_send_wr = init->cap.max_send_wr,
		.max_recv_wr = init->cap.max_recv_wr,
		.max_send_sge = init->cap.max_send_sge,
		.max_recv_sge = init->cap.max_recv_sge,
		.max_inline_data = init->cap.max_inline_data,
		.qkey = attr->qkey,
		.rq_psn = attr->rq_psn,
		.sq_psn = attr->sq_psn,
		.dest_qp_num = attr->dest_qpn,
		.qp_access_flags = attr->access,
		.pkey_index = attr->pkey_index,
		.alt_pkey_index = attr->alt_pkey_index,
		.qp_state = attr->state,
		.cur_qp_state = attr->cur_state,
		.path_mtu = attr->path_mtu,
		.path_mig_state = attr->path_mig_state,
		.sq_draining = attr->sq_draining,
		.max_rd_atomic = attr->max_rd_atomic,
		.max_dest_rd_atomic = attr->max_dest_rd_atomic,
		.min_rnr_timer = attr->min_rnr_timer,
		.port_num = attr->port_num,
		.timeout = attr->timeout,
		.retry_cnt = attr->retry_cnt,
		.rnr_retry = attr->rnr_retry,
		.alt_port_num = attr->alt_port_num,
		.alt_timeout = attr->alt_timeout,
		.sq_sig_all = init->sq_sig_all,
	};
	give_dest(&resp->dest, &attr->av);
	give_dest(&resp->alt_dest, &attr->alt_av);
}

/* All attributes, whatever the mask asks for. */
int uverbs_query_qp(struct uverbs_cmd *c)
{
	struct ib_uverbs_query_qp_resp resp;
	struct ib_uverbs_query_qp cmd;
	struct sfnic_rsp rsp;
	int err;

	err = uverbs_request(c, &cmd, sizeof(cmd));
	if (!err)
		err = uverbs_get_uhw(c, NULL, 0);
	if (!err)
		err = uverbs_call_id(c, SFNIC_QUERY_QP, cmd.qp_handle, &rsp);
	if (err)
		return err;
	give_attr(&resp, &rsp.query_qp.attr, &rsp.query_qp.init);
	return uverbs_respond(c, &resp, sizeof(resp));
}

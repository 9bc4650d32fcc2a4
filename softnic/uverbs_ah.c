// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Address handles and multicast groups. */
#include "softnic/uverbs_cmd.h"

static void take_attr(struct rnic_av *av, const struct ib_uverbs_ah_attr *attr)
{
	*av = (struct rnic_av){
		.flow_label = attr->grh.flow_label,
		.dlid = attr->dlid,
		.is_global = !!attr->is_global,
		.sgid_index = attr->grh.sgid_index,
		.hop_limit = attr->grh.hop_limit,
		.traffic_class = attr->grh.traffic_class,
		.sl = attr->sl,
		.src_path_bits = attr->src_path_bits,
		.static_rate = attr->static_rate,
		.port_num = attr->port_num,
	};
	memcpy(av->dgid, attr->grh.dgid, sizeof(av->dgid));
}

int uverbs_create_ah(struct uverbs_cmd *c)
{
	struct scalefabric_create_ah_resp driver = {};
	struct ib_uverbs_create_ah_resp resp;
	struct ib_uverbs_create_ah cmd;
	struct sfnic_req req = {};
	struct sfnic_rsp rsp;
	int err;

	err = uverbs_request(c, &cmd, sizeof(cmd));
	if (!err)
		err = uverbs_get_uhw(c, NULL, 0);
	if (!err)
		err = uverbs_probe(c);
	if (err)
		return err;
	req.create_ah.pdn = cmd.pd_handle;
	take_attr(&req.create_ah.av, &cmd.attr);
	err = uverbs_call(c, SFNIC_CREATE_AH, &req, &rsp);
	if (err)
		return err;
	resp.ah_handle = driver.ah = rsp.id;
	err = uverbs_put_uhw(c, &driver, sizeof(driver));
	return err ? err : uverbs_respond(c, &resp, sizeof(resp));
}

int uverbs_destroy_ah(struct uverbs_cmd *c)
{
	struct ib_uverbs_destroy_ah cmd;
	struct sfnic_rsp rsp;
	int err;

	err = uverbs_request(c, &cmd, sizeof(cmd));
	return err ? err :
		     uverbs_call_id(c, SFNIC_DESTROY_AH, cmd.ah_handle, &rsp);
}

int uverbs_ioctl_destroy_ah(struct uverbs_cmd *c)
{
	struct sfnic_rsp rsp;

	return uverbs_call_id(c, SFNIC_DESTROY_AH,
			      c->attr[UVERBS_ATTR_DESTROY_AH_HANDLE].value,
			      &rsp);
}

static int mcast(struct uverbs_cmd *c, uint32_t op)
{
	struct ib_uverbs_attach_mcast cmd;
	struct sfnic_req req = {};
	struct sfnic_rsp rsp;
	int err;

	err = uverbs_request(c, &cmd, sizeof(cmd));
	if (err)
		return err;
	req.mcast.qpn = cmd.qp_handle;
	req.mcast.mlid = cmd.mlid;
	memcpy(req.mcast.mgid, cmd.gid, sizeof(cmd.gid));
	return uverbs_call(c, op, &req, &rsp);
}

_Static_assert(sizeof(struct ib_uverbs_attach_mcast) ==
			       sizeof(struct ib_uverbs_detach_mcast) &&
		       offsetof(struct ib_uverbs_attach_mcast, mlid) ==
			       offsetof(struct ib_uverbs_detach_mcast, mlid),
	       "both look alike");

int uverbs_attach_mcast(struct uverbs_cmd *c)
{
	return mcast(c, SFNIC_ATTACH_MCAST);
}

int uverbs_detach_mcast(struct uverbs_cmd *c)
{
	return mcast(c, SFNIC_DETACH_MCAST);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What an id says of itself: addresses, device, path, attributes of its QP. */
#include <arpa/inet.h>
#include <endian.h>
#include "softnic/cma_id.h"

#define ABI_UNKNOWN_INDEX 0xffffffffu

/* A path record of subnet administration, packed (IBTA vol. 1, 15.2.5.16). */
struct path_record {
	uint64_t service_id;
	uint8_t dgid[16];
	uint8_t sgid[16];
	uint16_t dlid;
	uint16_t slid;
	uint32_t flow_hop;
	uint8_t traffic_class;
	uint8_t reversible;
	uint16_t pkey;
	uint16_t qos_sl;
	uint8_t mtu;
	uint8_t rate;
	uint8_t life_time;
	uint8_t preference;
	uint8_t reserved[6];
};
_Static_assert(sizeof(struct path_record) ==
		       sizeof(((struct ib_path_rec_data *)0)->path_rec),
	       "a packed path record");

#define EXACTLY 2 /* selector of MTU, rate and life time */

static uint64_t node_guid(struct cma *cma, const struct cma_id *id)
{
	struct rnic_device_info info;

	if (rnic_device_info(cma->rnic, id->path.dev, &info))
		return 0;
	return htobe64(info.node_guid);
}

/* Between ADDR_RESOLVED and ROUTE_RESOLVED there is an address, no path. */
static bool has_route(const struct cma_id *id)
{
	return id->has_device && id->state >= CMA_ROUTE_RESOLVED;
}

static void give_path(struct ib_user_path_rec *to,
		      const struct rnic_cm_path *path)
{
	memcpy(to->dgid, path->dgid, 16);
	memcpy(to->sgid, path->sgid, 16);
	to->dlid = htons(path->dlid);
	to->slid = htons(path->slid);
	to->flow_label = htonl(path->flow_label);
	to->reversible = 1;
	to->mtu = path->mtu;
	to->pkey = htons(path->pkey);
	to->hop_limit = path->hop_limit;
	to->traffic_class = path->traffic_class;
	to->numb_path = 1;
	to->sl = path->sl;
	to->mtu_selector = to->rate_selector = EXACTLY;
	to->packet_life_time_selector = EXACTLY;
	to->rate = path->rate;
	to->packet_life_time = path->life_time;
}

int cma_query_route(struct cma *cma, const struct cma_id *id,
		    struct cma_rsp *rsp)
{
	struct rdma_ucm_query_route_resp *r = &rsp->query_route;

	rsp->len = sizeof(*r);
	if (id->src.family != CMA_AF_IB) {
		memcpy(&r->src_addr, &id->src, cma_addr_size(&id->src));
		memcpy(&r->dst_addr, &id->dst, cma_addr_size(&id->dst));
	}
	r->ibdev_index = ABI_UNKNOWN_INDEX;
	if (!id->has_device)
		return 0;
	r->node_guid = node_guid(cma, id);
	r->port_num = id->path.port;
	if (has_route(id)) {
		r->num_paths = 1;
		give_path(&r->ib_route[0], &id->path);
		return 0;
	}
	memcpy(r->ib_route[0].dgid, id->path.dgid, 16);
	memcpy(r->ib_route[0].sgid, id->path.sgid, 16);
	r->ib_route[0].pkey = htons(id->path.pkey);
	return 0;
}

static void give_device(struct cma *cma, const struct cma_id *id,
			struct rdma_ucm_query_addr_resp *r)
{
	r->ibdev_index = ABI_UNKNOWN_INDEX;
	if (!id->has_device)
		return;
	r->node_guid = node_guid(cma, id);
	r->port_num = id->path.port;
	r->pkey = htons(id->path.pkey);
}

static void query_addr(struct cma *cma, const struct cma_id *id,
		       struct cma_rsp *rsp)
{
	struct rdma_ucm_query_addr_resp *r = &rsp->query_addr;

	rsp->len = sizeof(*r);
	give_device(cma, id, r);
	r->src_size = cma_addr_size(&id->src);
	r->dst_size = cma_addr_size(&id->dst);
	memcpy(&r->src_addr, &id->src, r->src_size);
	memcpy(&r->dst_addr, &id->dst, r->dst_size);
}

static void give_gid(const struct cma_id *id, const union cma_addr *addr,
		     const uint8_t gid[16],
		     struct __kernel_sockaddr_storage *to)
{
	struct cma_sockaddr_ib ib = {.sib_family = CMA_AF_IB};

	if (addr->family == CMA_AF_IB) {
		ib = addr->ib;
	} else {
		ib.sib_pkey = htons(id->path.pkey);
		memcpy(ib.sib_addr, gid, 16);
		ib.sib_sid = htobe64(cma_service_id(id, addr));
	}
	memcpy(to, &ib, sizeof(ib));
}

static void query_gid(struct cma *cma, const struct cma_id *id,
		      struct cma_rsp *rsp)
{
	struct rdma_ucm_query_addr_resp *r = &rsp->query_addr;

	rsp->len = sizeof(*r);
	give_device(cma, id, r);
	r->src_size = r->dst_size = sizeof(struct cma_sockaddr_ib);
	give_gid(id, &id->src, id->path.sgid, &r->src_addr);
	give_gid(id, &id->dst, id->path.dgid, &r->dst_addr);
}

static void query_path(const struct cma_id *id, struct cma_rsp *rsp)
{
	const struct rnic_cm_path *path = &id->path;
	struct path_record rec = {.reversible = 0x81};

	rsp->len = offsetof(struct rdma_ucm_query_path_resp, path_data);
	if (!has_route(id))
		return;
	memcpy(rec.dgid, path->dgid, 16);
	memcpy(rec.sgid, path->sgid, 16);
	rec.dlid = htons(path->dlid);
	rec.slid = htons(path->slid);
	rec.flow_hop = htonl(path->flow_label << 8 | path->hop_limit);
	rec.traffic_class = path->traffic_class;
	rec.pkey = htons(path->pkey);
	rec.qos_sl = htons(path->sl);
	rec.mtu = EXACTLY << 6 | path->mtu;
	rec.rate = EXACTLY << 6 | path->rate;
	rec.life_time = EXACTLY << 6 | path->life_time;
	rsp->query_path.num_paths = 1;
	rsp->query_path.data[0].flags =
		IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL;
	memcpy(rsp->query_path.data[0].path_rec, &rec, sizeof(rec));
	rsp->len += sizeof(rsp->query_path.data[0]);
}

int cma_query(struct cma *cma, const struct cma_id *id, uint32_t option,
	      struct cma_rsp *rsp)
{
	switch (option) {
	case RDMA_USER_CM_QUERY_ADDR:
		query_addr(cma, id, rsp);
		return 0;
	case RDMA_USER_CM_QUERY_PATH:
		query_path(id, rsp);
		return 0;
	case RDMA_USER_CM_QUERY_GID:
		query_gid(cma, id, rsp);
		return 0;
	}
	return ENOSYS;
}

/* ---- attributes of the QP
 * ---------------------------------------------------- */

static void give_ah(struct ib_uverbs_ah_attr *to, const struct rnic_av *av)
{
	memcpy(to->grh.dgid, av->dgid, 16);
	to->grh.flow_label = av->flow_label;
	to->grh.sgid_index = av->sgid_index;
	to->grh.hop_limit = av->hop_limit;
	to->grh.traffic_class = av->traffic_class;
	to->dlid = av->dlid;
	to->sl = av->sl;
	to->src_path_bits = av->src_path_bits;
	to->static_rate = av->static_rate;
	to->is_global = av->is_global;
	to->port_num = av->port_num;
}

void cma_ud_ah(const struct rnic_cm_path *path, struct ib_uverbs_ah_attr *ah)
{
	struct rnic_av av = {
		.dlid = path->dlid,
		.sl = path->sl,
		.static_rate = path->rate,
		.port_num = path->port,
		.is_global = path->global,
	};

	if (path->global) {
		memcpy(av.dgid, path->dgid, 16);
		av.sgid_index = path->sgid_index;
		av.hop_limit = path->hop_limit;
		av.traffic_class = path->traffic_class;
		av.flow_label = path->flow_label;
	}
	give_ah(ah, &av);
}

static int early_attr(const struct cma_id *id, struct rnic_qp_attr *attr,
		      uint32_t *mask)
{
	*mask = RNIC_QP_STATE | RNIC_QP_PKEY_INDEX | RNIC_QP_PORT;
	attr->port_num = id->path.port;
	if (cma_is_ud(id)) {
		attr->qkey = cma_qkey(id);
		*mask |= RNIC_QP_QKEY;
	} else {
		*mask |= RNIC_QP_ACCESS;
	}
	return 0;
}

int cma_init_qp_attr(struct cma *cma, const struct cma_id *id, uint32_t state,
		     struct cma_rsp *rsp)
{
	struct rnic_qp_attr attr = {.state = state};
	struct ib_uverbs_qp_attr *r = &rsp->qp_attr;
	uint32_t mask;
	int err;

	if (state > RNIC_ERR)
		return EINVAL;
	if (!id->conn || cma_is_ud(id))
		err = early_attr(id, &attr, &mask);
	else
		err = rnic_cm_qp_attr(&cma->cm, id->conn, &attr, &mask);
	if (err)
		return err;
	/* Asked for before the REP says it, too. */
	attr.rq_psn = id->psn;
	rsp->len = sizeof(*r);
	r->qp_attr_mask = mask;
	r->qp_state = attr.state;
	r->path_mtu = attr.path_mtu;
	r->qkey = attr.qkey;
	r->rq_psn = attr.rq_psn;
	r->sq_psn = attr.sq_psn;
	r->dest_qp_num = attr.dest_qpn;
	r->qp_access_flags = attr.access;
	give_ah(&r->ah_attr, &attr.av);
	r->pkey_index = attr.pkey_index;
	r->max_rd_atomic = attr.max_rd_atomic;
	r->max_dest_rd_atomic = attr.max_dest_rd_atomic;
	r->min_rnr_timer = attr.min_rnr_timer;
	r->port_num = attr.port_num;
	r->timeout = attr.timeout;
	r->retry_cnt = attr.retry_cnt;
	r->rnr_retry = attr.rnr_retry;
	return 0;
}

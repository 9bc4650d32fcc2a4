// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Context, device, ports, GIDs. */
#include <endian.h>

#include "softnic/uverbs_cmd.h"

/* ---- context --------------------------------------------------------- */

static const struct scalefabric_alloc_ucontext_resp context_resp = {
	.hw_version = SF_HW_VERSION,
	.sq_doorbell = SCALEFABRIC_DOORBELL_NOTIFY,
	.rq_doorbell = SCALEFABRIC_DOORBELL_NOTIFY,
	.srq_doorbell = SCALEFABRIC_DOORBELL_NOTIFY,
	.cq_doorbell = SCALEFABRIC_DOORBELL_NOTIFY,
	.max_send_sge = SF_MAX_SEND_SGE,
	.max_inline = SF_MAX_INLINE,
	.max_log_depth = SF_MAX_LOG_DEPTH,
	.max_cq_log_depth = SF_MAX_CQ_LOG_DEPTH,
	.clock = SCALEFABRIC_CLOCK_MONOTONIC,
};

static int get_context_req(const struct uverbs_cmd *c)
{
	struct scalefabric_alloc_ucontext_req req;
	int err;

	err = uverbs_get_uhw(c, &req, sizeof(req));
	if (err)
		return err;
	return req.comp_mask ? EOPNOTSUPP : 0;
}

/* The same two attributes, with the same ids, in two methods. */
_Static_assert((int)UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS ==
		       (int)UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS,
	       "one answer for both");
_Static_assert((int)UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT ==
		       (int)UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT,
	       "one answer for both");

static int put_context(struct uverbs_cmd *c)
{
	uint64_t support = IB_UVERBS_CORE_SUPPORT_OPTIONAL_MR_ACCESS;
	uint32_t vectors = UVERBS_NUM_COMP_VECTORS;
	int err;

	err = uverbs_put(&c->attr[UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS],
			 &vectors, sizeof(vectors));
	if (!err)
		err = uverbs_put(&c->attr[UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT],
				 &support, sizeof(support));
	if (!err)
		err = uverbs_put_uhw(c, &context_resp, sizeof(context_resp));
	return err;
}

int uverbs_ioctl_get_context(struct uverbs_cmd *c)
{
	int err = get_context_req(c);

	return err ? err : put_context(c);
}

/* For who imports a context: the driver part is only an answer. */
int uverbs_ioctl_query_context(struct uverbs_cmd *c)
{
	int err = uverbs_get_uhw(c, NULL, 0);

	return err ? err : put_context(c);
}

int uverbs_get_context(struct uverbs_cmd *c)
{
	struct ib_uverbs_get_context_resp resp = {
		.num_comp_vectors = UVERBS_NUM_COMP_VECTORS,
	};
	int err, fd;

	err = get_context_req(c);
	if (!err)
		err = uverbs_probe(c);
	if (!err)
		err = c->ops->async_fd(c->ctx, &fd);
	if (err)
		return err;
	resp.async_fd = fd;
	err = uverbs_put_uhw(c, &context_resp, sizeof(context_resp));
	return err ? err : uverbs_respond(c, &resp, sizeof(resp));
}

int uverbs_ioctl_alloc_async_fd(struct uverbs_cmd *c)
{
	int err, fd;

	err = uverbs_probe(c);
	if (!err)
		err = c->ops->async_fd(c->ctx, &fd);
	if (!err)
		c->result = fd;
	return err;
}

/* ---- device ---------------------------------------------------------- */

#define VENDOR_PART_ID 0x5f01			    /* the software RNIC */
#define FW_VERSION ((0ull << 32) | (1u << 16) | 0u) /* major, minor, sub */
#define ATOMIC_HCA 1				    /* enum ibv_atomic_cap */
#define CA_ACK_DELAY 15				    /* 4.096 us << 15: 134 ms */
#define CLOCK_KHZ 1000000 /* timestamps are nanoseconds */

/* Of each pool, number 0 is no object. */
#define USABLE(pool) ((pool)-1)

static const struct ib_uverbs_query_device_resp device_limits = {
	.fw_ver = FW_VERSION,
	.max_mr_size = ~0ull,
	.page_size_cap = 0xfffff000,
	.vendor_id = SCALEFABRIC_PCI_VENDOR,
	.vendor_part_id = VENDOR_PART_ID,
	.max_qp = RNIC_MAX_QP,
	.max_qp_wr = 1u << SF_MAX_LOG_DEPTH,
	.device_cap_flags = IB_UVERBS_DEVICE_CURR_QP_STATE_MOD |
			    IB_UVERBS_DEVICE_SYS_IMAGE_GUID |
			    IB_UVERBS_DEVICE_RC_RNR_NAK_GEN |
			    IB_UVERBS_DEVICE_SRQ_RESIZE |
			    IB_UVERBS_DEVICE_XRC |
			    IB_UVERBS_DEVICE_MEM_WINDOW |
			    IB_UVERBS_DEVICE_MEM_MGT_EXTENSIONS |
			    IB_UVERBS_DEVICE_MEM_WINDOW_TYPE_2B,
	.max_sge = SF_MAX_SEND_SGE,
	.max_sge_rd = SF_MAX_SEND_SGE,
	.max_cq = USABLE(RNIC_MAX_CQ),
	.max_cqe = 1u << SF_MAX_CQ_LOG_DEPTH,
	.max_mr = USABLE(RNIC_MAX_MR),
	.max_mw = USABLE(RNIC_MAX_MW),
	.max_pd = USABLE(RNIC_MAX_PD),
	.max_ah = USABLE(RNIC_MAX_AH),
	.max_mcast_grp = RNIC_MAX_MCAST,
	.max_mcast_qp_attach = RNIC_MAX_MCAST,
	.max_total_mcast_qp_attach = RNIC_MAX_MCAST,
	.max_srq = USABLE(RNIC_MAX_SRQ),
	.max_srq_wr = 1u << SF_MAX_LOG_DEPTH,
	.max_srq_sge = SF_MAX_RECV_SGE,
	.max_qp_rd_atom = RNIC_MAX_RD_ATOMIC,
	.max_res_rd_atom = RNIC_MAX_RD_ATOMIC * RNIC_MAX_QP,
	.max_qp_init_rd_atom = RNIC_MAX_RD_ATOMIC,
	.atomic_cap = ATOMIC_HCA,
	.max_pkeys = 1,
	.local_ca_ack_delay = CA_ACK_DELAY,
};

/* Raw packets are Ethernet's. */
static bool has_raw(const struct uverbs_cmd *c)
{
	struct rnic_port_info port;

	return !c->ops->port_info(c->dev, 1, &port) &&
	       port.link_layer == RNIC_ETHERNET;
}

static void fill_raw(struct ib_uverbs_ex_query_device_resp *resp,
		     struct scalefabric_query_device_resp *driver)
{
	resp->raw_packet_caps = IB_UVERBS_RAW_PACKET_CAP_IP_CSUM;
	resp->rss_caps = (struct ib_uverbs_rss_caps){
		.supported_qpts = 1u << IB_UVERBS_QPT_RAW_PACKET,
		.max_rwq_indirection_tables = USABLE(RNIC_MAX_WQ_TABLE),
		.max_rwq_indirection_table_size = 1u << RNIC_MAX_LOG_WQ_TABLE,
	};
	resp->max_wq_type_rq = RNIC_MAX_QP;
	driver->rx_hash_fields = RNIC_HASH_FIELDS;
	driver->rx_hash_function = SCALEFABRIC_RX_HASH_TOEPLITZ;
}

static int fill_device(const struct uverbs_cmd *c,
		       struct ib_uverbs_query_device_resp *resp)
{
	struct rnic_device_info info;
	int err;

	err = c->ops->device_info(c->dev, &info);
	if (err)
		return err;
	*resp = device_limits;
	if (has_raw(c))
		resp->device_cap_flags |=
			IB_UVERBS_DEVICE_RAW_IP_CSUM |
			IB_UVERBS_DEVICE_MANAGED_FLOW_STEERING;
	resp->node_guid = htobe64(info.node_guid);
	resp->sys_image_guid = htobe64(info.sys_image_guid);
	resp->phys_port_cnt = info.ports;
	return 0;
}

int uverbs_query_device(struct uverbs_cmd *c)
{
	struct ib_uverbs_query_device_resp resp;
	int err;

	err = uverbs_get_uhw(c, NULL, 0);
	if (!err)
		err = fill_device(c, &resp);
	return err ? err : uverbs_respond(c, &resp, sizeof(resp));
}

/* enum ibv_odp_general_caps, enum ibv_odp_transport_cap_bits */
#define ODP (1u << 0)
#define ODP_IMPLICIT (1u << 1)
#define ODP_SEND (1u << 0)
#define ODP_RECV (1u << 1)
#define ODP_WRITE (1u << 2)
#define ODP_READ (1u << 3)
#define ODP_ATOMIC (1u << 4)
#define ODP_SRQ_RECV (1u << 5)
#define ODP_UD (ODP_SEND | ODP_RECV | ODP_SRQ_RECV)
#define ODP_UC (ODP_UD | ODP_WRITE)
#define ODP_RC (ODP_UC | ODP_READ | ODP_ATOMIC)

/* Newer than the header may be: IB_UVERBS_DEVICE_ATOMIC_WRITE. */
#define DEVICE_ATOMIC_WRITE (1ull << 40)

int uverbs_ex_query_device(struct uverbs_cmd *c)
{
	struct ib_uverbs_ex_query_device_resp resp = {
		.odp_caps =
			{
				.general_caps = ODP | ODP_IMPLICIT,
				.per_transport_caps.rc_odp_caps = ODP_RC,
				.per_transport_caps.uc_odp_caps = ODP_UC,
				.per_transport_caps.ud_odp_caps = ODP_UD,
			},
		.xrc_odp_caps = ODP_RC,
		.cq_moderation_caps = {UINT16_MAX, UINT16_MAX, 0},
		.max_dm_size = RNIC_MAX_DM_SIZE,
		.timestamp_mask = ~0ull,
		.hca_core_clock = CLOCK_KHZ,
	};
	struct scalefabric_query_device_resp driver = {};
	struct ib_uverbs_ex_query_device req;
	int err;

	err = uverbs_request(c, &req, sizeof(req));
	if (!err)
		err = uverbs_get_uhw(c, NULL, 0);
	if (err)
		return err;
	if (req.comp_mask || req.reserved)
		return EINVAL;
	err = fill_device(c, &resp.base);
	if (err)
		return err;
	resp.device_cap_flags_ex =
		resp.base.device_cap_flags | DEVICE_ATOMIC_WRITE;
	if (has_raw(c))
		fill_raw(&resp, &driver);
	err = uverbs_put_uhw(c, &driver, sizeof(driver));
	if (err)
		return err;
	resp.response_length = uverbs_response_length(c, sizeof(resp));
	return uverbs_respond(c, &resp, sizeof(resp));
}

/* ---- ports ----------------------------------------------------------- */

#define PORT_ACTIVE 4  /* enum ibv_port_state */
#define PHYS_POLLING 2 /* IBTA vol. 1, 14.2.5.6, PortPhysicalState */
#define PHYS_LINK_UP 5
/* What a copy by one CPU is good for: 4 lanes of 25 Gb/s. */
#define WIDTH_4X 2
#define SPEED_NDR 128 /* the card's; memory does about as much */

static uint32_t port_cap_flags(const struct rnic_port_info *info)
{
	return info->link_layer == RNIC_ETHERNET ?
		       IB_UVERBS_PCF_IP_BASED_GIDS :
		       IB_UVERBS_PCF_SYS_IMAGE_GUID_SUP;
}

static int fill_port(const struct uverbs_cmd *c, uint64_t port,
		     struct ib_uverbs_query_port_resp *resp)
{
	struct rnic_port_info info;
	int err;

	if (port > UINT32_MAX)
		return EINVAL;
	err = c->ops->port_info(c->dev, port, &info);
	if (err)
		return err;
	*resp = (struct ib_uverbs_query_port_resp){
		.port_cap_flags = port_cap_flags(&info),
		.max_msg_sz = SF_MAX_MSG,
		.gid_tbl_len = RNIC_MAX_GIDS,
		.pkey_tbl_len = 1,
		.lid = info.lid,
		.sm_lid = info.sm_lid,
		.state = info.state,
		.max_mtu = info.max_mtu,
		.active_mtu = info.mtu,
		.lmc = info.lmc,
		.max_vl_num = 1,
		.sm_sl = info.sm_sl,
		.active_width = WIDTH_4X,
		.active_speed = SPEED_NDR,
		.phys_state =
			info.state == PORT_ACTIVE ? PHYS_LINK_UP : PHYS_POLLING,
		.link_layer = info.link_layer,
		.flags = info.link_layer == RNIC_ETHERNET ?
				 IB_UVERBS_QPF_GRH_REQUIRED :
				 0,
	};
	return 0;
}

int uverbs_query_port(struct uverbs_cmd *c)
{
	struct ib_uverbs_query_port_resp resp;
	struct ib_uverbs_query_port req;
	int err;

	err = uverbs_request(c, &req, sizeof(req));
	if (!err)
		err = uverbs_get_uhw(c, NULL, 0);
	if (!err)
		err = fill_port(c, req.port_num, &resp);
	return err ? err : uverbs_respond(c, &resp, sizeof(resp));
}

int uverbs_ioctl_query_port(struct uverbs_cmd *c)
{
	struct ib_uverbs_query_port_resp_ex resp = {};
	int err;

	err = fill_port(c, c->attr[UVERBS_ATTR_QUERY_PORT_PORT_NUM].value,
			&resp.legacy_resp);
	if (err)
		return err;
	return uverbs_put(&c->attr[UVERBS_ATTR_QUERY_PORT_RESP], &resp,
			  sizeof(resp));
}

/* ---- GIDs ------------------------------------------------------------ */

static bool gid_valid(const struct rnic_port_info *info, uint32_t index)
{
	static const uint8_t zero[16];

	return index < info->gids && index < RNIC_MAX_GIDS &&
	       memcmp(info->gid[index], zero, sizeof(zero));
}

static void fill_gid(const struct rnic_port_info *info, uint32_t port,
		     uint32_t index, struct ib_uverbs_gid_entry *entry)
{
	*entry = (struct ib_uverbs_gid_entry){
		.gid_index = index,
		.port_num = port,
		.gid_type = info->link_layer == RNIC_ETHERNET ?
				    IB_UVERBS_GID_TYPE_ROCE_V2 :
				    IB_UVERBS_GID_TYPE_IB,
	};
	memcpy(entry->gid, info->gid[index], sizeof(entry->gid));
}

int uverbs_ioctl_query_gid_entry(struct uverbs_cmd *c)
{
	uint64_t port = c->attr[UVERBS_ATTR_QUERY_GID_ENTRY_PORT].value;
	uint64_t index = c->attr[UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX].value;
	struct ib_uverbs_gid_entry entry;
	struct rnic_port_info info;
	int err;

	if (c->attr[UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS].value ||
	    port > UINT32_MAX || index >= RNIC_MAX_GIDS)
		return EINVAL;
	err = c->ops->port_info(c->dev, port, &info);
	if (err)
		return err;
	if (!gid_valid(&info, index))
		return ENODATA;
	fill_gid(&info, port, index, &entry);
	return uverbs_put(&c->attr[UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY],
			  &entry, sizeof(entry));
}

/* The caller's entries may be shorter or longer than ours. */
struct gid_table {
	struct uverbs_buf *buf;
	uint64_t entry_size;
	uint64_t room;
	uint64_t count;
};

static int put_gid(struct gid_table *table, const struct rnic_port_info *info,
		   uint32_t port, uint32_t index)
{
	struct uverbs_buf to = {
		.addr = table->buf->addr + table->count * table->entry_size,
		.len = table->entry_size,
		.present = true,
	};
	struct ib_uverbs_gid_entry entry;

	if (table->count == table->room)
		return EINVAL;
	table->count++;
	fill_gid(info, port, index, &entry);
	return uverbs_put(&to, &entry, sizeof(entry));
}

static int put_port_gids(const struct uverbs_cmd *c, struct gid_table *table,
			 uint32_t port)
{
	struct rnic_port_info info;
	uint32_t i;
	int err;

	err = c->ops->port_info(c->dev, port, &info);
	for (i = 0; !err && i < RNIC_MAX_GIDS; i++)
		if (gid_valid(&info, i))
			err = put_gid(table, &info, port, i);
	return err;
}

int uverbs_ioctl_query_gid_table(struct uverbs_cmd *c)
{
	struct gid_table table = {
		.buf = &c->attr[UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES],
		.entry_size =
			c->attr[UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE].value,
	};
	struct rnic_device_info info;
	uint32_t port;
	int err;

	if (c->attr[UVERBS_ATTR_QUERY_GID_TABLE_FLAGS].value ||
	    !table.entry_size || table.buf->len % table.entry_size)
		return EINVAL;
	table.room = table.buf->len / table.entry_size;
	err = c->ops->device_info(c->dev, &info);
	for (port = 1; !err && port <= info.ports; port++)
		err = put_port_gids(c, &table, port);
	if (err)
		return err;
	table.buf->written = true;
	return uverbs_put(
		&c->attr[UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES],
		&table.count, sizeof(table.count));
}

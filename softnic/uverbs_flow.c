// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Steering rules and their counters. */
#include <endian.h>

#include "softnic/uverbs_cmd.h"

/* ---- filters --------------------------------------------------------- */

/* The kernel's enum ib_flow_spec_type. */
enum {
	SPEC_ETH = 0x20,
	SPEC_IPV4 = 0x30,
	SPEC_IPV6 = 0x31,
	SPEC_ESP = 0x34,
	SPEC_TCP = 0x40,
	SPEC_UDP = 0x41,
	SPEC_VXLAN = 0x50,
	SPEC_GRE = 0x51,
	SPEC_MPLS = 0x60,
	SPEC_INNER = 0x100,
	SPEC_TAG = 0x1000,
	SPEC_DROP = 0x1001,
	SPEC_COUNT = 0x1003,
};

#define MAX_SPECS 10 /* the kernel's IB_FLOW_SPEC_SUPPORT_LAYERS */

union filter {
	struct ib_uverbs_flow_eth_filter eth;
	struct ib_uverbs_flow_ipv4_filter ipv4;
	struct ib_uverbs_flow_ipv6_filter ipv6;
	struct ib_uverbs_flow_spec_esp_filter esp;
	struct ib_uverbs_flow_tcp_udp_filter ports;
	struct ib_uverbs_flow_tunnel_filter tunnel;
	struct ib_uverbs_flow_gre_filter gre;
	struct ib_uverbs_flow_mpls_filter mpls;
};

static void take_eth(struct rnic_headers *h, const union filter *f)
{
	memcpy(h->dst_mac, f->eth.dst_mac, 6);
	memcpy(h->src_mac, f->eth.src_mac, 6);
	h->ether_type = f->eth.ether_type;
	h->vlan_tag = f->eth.vlan_tag;
}

static void take_ipv4(struct rnic_headers *h, const union filter *f)
{
	memcpy(h->src_ip, &f->ipv4.src_ip, 4);
	memcpy(h->dst_ip, &f->ipv4.dst_ip, 4);
	h->proto = f->ipv4.proto;
	h->tos = f->ipv4.tos;
	h->ttl = f->ipv4.ttl;
	h->ip_flags = f->ipv4.flags;
}

static void take_ipv6(struct rnic_headers *h, const union filter *f)
{
	memcpy(h->src_ip, f->ipv6.src_ip, 16);
	memcpy(h->dst_ip, f->ipv6.dst_ip, 16);
	h->flow_label = f->ipv6.flow_label;
	h->proto = f->ipv6.next_hdr;
	h->tos = f->ipv6.traffic_class;
	h->ttl = f->ipv6.hop_limit;
}

static void take_esp(struct rnic_headers *h, const union filter *f)
{
	h->spi = f->esp.spi;
	h->seq = f->esp.seq;
}

static void take_ports(struct rnic_headers *h, const union filter *f)
{
	h->dst_port = f->ports.dst_port;
	h->src_port = f->ports.src_port;
}

static void take_vxlan(struct rnic_headers *h, const union filter *f)
{
	h->vni = f->tunnel.tunnel_id;
}

static void take_gre(struct rnic_headers *h, const union filter *f)
{
	h->gre_flags = f->gre.c_ks_res0_ver;
	h->gre_protocol = f->gre.protocol;
	h->gre_key = f->gre.key;
}

static void take_mpls(struct rnic_headers *h, const union filter *f)
{
	h->mpls = f->mpls.label;
}

#define L3 (RNIC_LAYER_IPV4 | RNIC_LAYER_IPV6)
#define L4 (RNIC_LAYER_TCP | RNIC_LAYER_UDP | RNIC_LAYER_ESP)
#define TUNNEL (RNIC_LAYER_VXLAN | RNIC_LAYER_GRE)

static const struct filter_kind {
	uint32_t type;
	uint32_t layer;
	uint32_t one_of; /* of these a frame has one */
	uint32_t size;
	void (*take)(struct rnic_headers *h, const union filter *f);
} filter_kinds[] = {
	{SPEC_ETH, RNIC_LAYER_ETH, RNIC_LAYER_ETH,
	 sizeof(struct ib_uverbs_flow_eth_filter), take_eth},
	{SPEC_IPV4, RNIC_LAYER_IPV4, L3,
	 sizeof(struct ib_uverbs_flow_ipv4_filter), take_ipv4},
	{SPEC_IPV6, RNIC_LAYER_IPV6, L3,
	 offsetof(struct ib_uverbs_flow_ipv6_filter, reserved), take_ipv6},
	{SPEC_ESP, RNIC_LAYER_ESP, L4,
	 sizeof(struct ib_uverbs_flow_spec_esp_filter), take_esp},
	{SPEC_TCP, RNIC_LAYER_TCP, L4,
	 sizeof(struct ib_uverbs_flow_tcp_udp_filter), take_ports},
	{SPEC_UDP, RNIC_LAYER_UDP, L4,
	 sizeof(struct ib_uverbs_flow_tcp_udp_filter), take_ports},
	{SPEC_VXLAN, RNIC_LAYER_VXLAN, TUNNEL,
	 sizeof(struct ib_uverbs_flow_tunnel_filter), take_vxlan},
	{SPEC_GRE, RNIC_LAYER_GRE, TUNNEL,
	 sizeof(struct ib_uverbs_flow_gre_filter), take_gre},
	{SPEC_MPLS, RNIC_LAYER_MPLS, RNIC_LAYER_MPLS,
	 sizeof(struct ib_uverbs_flow_mpls_filter), take_mpls},
};

static const struct filter_kind *find_kind(uint32_t type)
{
	size_t i;

	for (i = 0; i < sizeof(filter_kinds) / sizeof(filter_kinds[0]); i++)
		if (filter_kinds[i].type == type)
			return &filter_kinds[i];
	return NULL;
}

/*
 * Two filters of @size bytes each, value and mask, at @addr.  Fields that this
 * device does not know may not be asked for.
 */
static int get_filter(const struct filter_kind *kind, uint64_t addr,
		      uint32_t size, union filter *value, union filter *mask)
{
	uint32_t n = size < kind->size ? size : kind->size;
	int err;

	memset(value, 0, sizeof(*value));
	memset(mask, 0, sizeof(*mask));
	if (!size)
		return EINVAL;
	err = uverbs_copy_in(value, addr, n);
	if (!err)
		err = uverbs_copy_in(mask, addr + size, n);
	if (!err)
		err = uverbs_check_zero(addr + size + n, size - n);
	return err;
}

/* Numbers of 20 and of 24 bits. */
static int check_numbers(const struct filter_kind *kind, const union filter *f)
{
	if (kind->type == SPEC_IPV6 && be32toh(f->ipv6.flow_label) >> 20)
		return EINVAL;
	if (kind->type == SPEC_VXLAN && be32toh(f->tunnel.tunnel_id) >> 24)
		return EINVAL;
	return 0;
}

static int take_filter(const struct ib_uverbs_flow_spec_hdr *hdr, uint64_t addr,
		       struct rnic_flow_attr *attr)
{
	const struct filter_kind *kind = find_kind(hdr->type & ~SPEC_INNER);
	bool inner = hdr->type & SPEC_INNER;
	struct rnic_headers *v =
		inner ? &attr->value.inner : &attr->value.outer;
	struct rnic_headers *m = inner ? &attr->mask.inner : &attr->mask.outer;
	union filter value, mask;
	int err;

	if (!kind || (inner && kind->layer & TUNNEL))
		return EINVAL;
	err = get_filter(kind, addr, (hdr->size - sizeof(*hdr)) / 2, &value,
			 &mask);
	if (!err)
		err = check_numbers(kind, &value);
	if (!err)
		err = check_numbers(kind, &mask);
	if (err)
		return err;
	if (m->layers & kind->one_of)
		return EINVAL;
	kind->take(v, &value);
	kind->take(m, &mask);
	v->layers |= kind->layer;
	m->layers |= kind->layer;
	if (kind->type == SPEC_ETH && mask.eth.vlan_tag) {
		v->layers |= RNIC_LAYER_VLAN;
		m->layers |= RNIC_LAYER_VLAN;
	}
	return 0;
}

/* ---- actions --------------------------------------------------------- */

static int take_action(const struct ib_uverbs_flow_spec_hdr *hdr, uint64_t addr,
		       struct rnic_flow_attr *attr)
{
	uint32_t word = 0;
	int err;

	if (hdr->type == SPEC_DROP) {
		if (hdr->size != sizeof(struct ib_uverbs_flow_spec_action_drop))
			return EINVAL;
		attr->flags |= RNIC_FLOW_DROP;
		return 0;
	}
	/* Of the same shape. */
	if ((hdr->type != SPEC_TAG && hdr->type != SPEC_COUNT) ||
	    hdr->size != sizeof(struct ib_uverbs_flow_spec_action_tag))
		return EINVAL;
	err = uverbs_copy_in(&word, addr, sizeof(word));
	if (err)
		return err;
	if (hdr->type == SPEC_TAG) {
		attr->tag = word;
		return 0;
	}
	if (!word || attr->counters)
		return EINVAL;
	attr->counters = word;
	return 0;
}

_Static_assert(
	sizeof(struct ib_uverbs_flow_spec_action_tag) ==
			sizeof(struct ib_uverbs_flow_spec_action_count) &&
		offsetof(struct ib_uverbs_flow_spec_action_tag, tag_id) ==
			offsetof(struct ib_uverbs_flow_spec_action_count,
				 handle),
	"one word after the header");

/* ---- rules ----------------------------------------------------------- */

/* The kernel's enum ib_flow_flags, and one that libibverbs has before them. */
enum {
	FLAG_LOOP_BACK = 1 << 0,
	FLAG_DONT_TRAP = 1 << 1,
	FLAG_EGRESS = 1 << 2,
	FLAG_RESERVED = 1 << 3,
};

static int take_specs(uint64_t addr, const struct ib_uverbs_flow_attr *cmd,
		      struct rnic_flow_attr *attr)
{
	struct ib_uverbs_flow_spec_hdr hdr;
	uint32_t i, left = cmd->size;
	int err;

	for (i = 0; i < cmd->num_of_specs; i++) {
		if (left < sizeof(hdr))
			return EINVAL;
		err = uverbs_copy_in(&hdr, addr, sizeof(hdr));
		if (err)
			return err;
		if (hdr.size < sizeof(hdr) || hdr.size > left || hdr.reserved)
			return EINVAL;
		err = hdr.type >= SPEC_TAG ?
			      take_action(&hdr, addr + sizeof(hdr), attr) :
			      take_filter(&hdr, addr + sizeof(hdr), attr);
		if (err)
			return err;
		addr += hdr.size;
		left -= hdr.size;
	}
	return left ? EINVAL : 0;
}

static int check_flow(const struct ib_uverbs_create_flow *cmd)
{
	const struct ib_uverbs_flow_attr *attr = &cmd->flow_attr;

	if (cmd->comp_mask || attr->flags >= FLAG_RESERVED)
		return EINVAL;
	if (attr->flags & FLAG_DONT_TRAP &&
	    (attr->type == RNIC_FLOW_ALL_DEFAULT ||
	     attr->type == RNIC_FLOW_MC_DEFAULT))
		return EINVAL;
	if (attr->num_of_specs > MAX_SPECS || attr->type > RNIC_FLOW_SNIFFER)
		return EINVAL;
	/* Only what a rule asks for can be asked for. */
	if (attr->type != RNIC_FLOW_NORMAL && attr->num_of_specs)
		return EINVAL;
	/* What is sent is not steered. */
	return attr->flags & FLAG_EGRESS ? EOPNOTSUPP : 0;
}

static int get_flow(const struct uverbs_cmd *c, struct rnic_flow_attr *attr)
{
	const struct uverbs_buf *in = &c->attr[UVERBS_ATTR_CORE_IN];
	struct ib_uverbs_create_flow cmd;
	uint32_t used;
	int err;

	err = uverbs_copy_in(&cmd, in->addr, sizeof(cmd));
	if (!err)
		err = check_flow(&cmd);
	if (err)
		return err;
	used = sizeof(cmd) +
	       (cmd.flow_attr.num_of_specs ? cmd.flow_attr.size : 0);
	if (used > in->len)
		return ENOSPC;
	*attr = (struct rnic_flow_attr){
		.qpn = cmd.qp_handle,
		.port = cmd.flow_attr.port,
		.type = cmd.flow_attr.type,
		.priority = cmd.flow_attr.priority,
		.flags = cmd.flow_attr.flags & FLAG_DONT_TRAP ?
				 RNIC_FLOW_DONT_TRAP :
				 0,
	};
	err = take_specs(in->addr + sizeof(cmd), &cmd.flow_attr, attr);
	if (err)
		return err;
	err = uverbs_check_zero(in->addr + used, in->len - used);
	return err == EINVAL ? EOPNOTSUPP : err;
}

int uverbs_ex_create_flow(struct uverbs_cmd *c)
{
	struct ib_uverbs_create_flow_resp resp = {};
	struct sfnic_req req = {};
	struct sfnic_rsp rsp;
	int err;

	err = get_flow(c, &req.flow);
	if (!err)
		err = uverbs_get_uhw(c, NULL, 0);
	if (!err)
		err = uverbs_probe(c);
	if (!err)
		err = uverbs_call(c, SFNIC_CREATE_FLOW, &req, &rsp);
	if (err)
		return err;
	resp.flow_handle = rsp.id;
	return uverbs_respond(c, &resp, sizeof(resp));
}

int uverbs_ex_destroy_flow(struct uverbs_cmd *c)
{
	struct ib_uverbs_destroy_flow cmd;
	struct sfnic_rsp rsp;
	int err;

	err = uverbs_request(c, &cmd, sizeof(cmd));
	if (err)
		return err;
	if (cmd.comp_mask)
		return EINVAL;
	return uverbs_call_id(c, SFNIC_DESTROY_FLOW, cmd.flow_handle, &rsp);
}

int uverbs_ioctl_destroy_flow(struct uverbs_cmd *c)
{
	struct sfnic_rsp rsp;

	return uverbs_call_id(c, SFNIC_DESTROY_FLOW,
			      c->attr[UVERBS_ATTR_DESTROY_FLOW_HANDLE].value,
			      &rsp);
}

/* ---- counters -------------------------------------------------------- */

int uverbs_ioctl_create_counters(struct uverbs_cmd *c)
{
	struct sfnic_req req = {};
	struct sfnic_rsp rsp;
	int err;

	err = uverbs_probe(c);
	if (!err)
		err = uverbs_call(c, SFNIC_CREATE_FLOW_COUNTERS, &req, &rsp);
	if (!err)
		c->result = rsp.id;
	return err;
}

int uverbs_ioctl_destroy_counters(struct uverbs_cmd *c)
{
	struct sfnic_rsp rsp;

	return uverbs_call_id(
		c, SFNIC_DESTROY_FLOW_COUNTERS,
		c->attr[UVERBS_ATTR_DESTROY_COUNTERS_HANDLE].value, &rsp);
}

/* Every read asks the device: there is nothing to be preferred (flags). */
int uverbs_ioctl_read_counters(struct uverbs_cmd *c)
{
	struct uverbs_buf *buf = &c->attr[UVERBS_ATTR_READ_COUNTERS_BUFF];
	uint64_t flags = c->attr[UVERBS_ATTR_READ_COUNTERS_FLAGS].value;
	struct sfnic_rsp rsp;
	int err;

	if (flags & ~(uint64_t)IB_UVERBS_READ_COUNTERS_PREFER_CACHED ||
	    buf->len % sizeof(uint64_t))
		return EINVAL;
	err = uverbs_call_id(c, SFNIC_READ_FLOW_COUNTERS,
			     c->attr[UVERBS_ATTR_READ_COUNTERS_HANDLE].value,
			     &rsp);
	if (err)
		return err;
	return uverbs_put(buf, &rsp.flow_count, sizeof(rsp.flow_count));
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What an Ethernet frame says: headers for the steering rules, checksums, the
 * hash of receive-side scaling.  A frame may be any bytes: every step looks
 * first whether there is enough left, and what cannot be read is not there.
 */
#include "rnic/internal.h"

/* What is left of a frame. */
struct cursor {
	const struct rnic_frame *frame;
	uint32_t off;
};

static const uint8_t *peek(const struct cursor *c, uint32_t len)
{
	return len <= c->frame->len - c->off ? c->frame->data + c->off : NULL;
}

static const uint8_t *take(struct cursor *c, uint32_t len)
{
	const uint8_t *p = peek(c, len);

	if (p)
		c->off += len;
	return p;
}

static uint32_t be16(const uint8_t *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

static void put_be16(uint8_t *p, uint32_t v)
{
	p[0] = v >> 8;
	p[1] = v;
}

/* ---- headers -------------------------------------------------------- */

enum {
	TYPE_IPV4 = 0x0800,
	TYPE_VLAN = 0x8100,
	TYPE_IPV6 = 0x86dd,
	TYPE_MPLS = 0x8847,
	TYPE_MPLS_GROUP = 0x8848,
	TYPE_QINQ = 0x88a8,
	TYPE_ETHERNET = 0x6558, /* in GRE */

	PROTO_HOP = 0,
	PROTO_IPV4 = 4,
	PROTO_TCP = 6,
	PROTO_UDP = 17,
	PROTO_IPV6 = 41,
	PROTO_ROUTING = 43,
	PROTO_FRAGMENT = 44,
	PROTO_GRE = 47,
	PROTO_ESP = 50,
	PROTO_OPTIONS = 60,

	PORT_VXLAN = 4789,
};

#define MAX_TAGS 4 /* VLAN tags, MPLS labels, IPv6 extensions */

static void parse_ethernet(struct rnic_frame *f, struct cursor *c,
			   struct rnic_headers *h);
static void parse_type(struct rnic_frame *f, struct cursor *c,
		       struct rnic_headers *h, uint32_t type);

static bool is_outer(const struct rnic_frame *f, const struct rnic_headers *h)
{
	return h == &f->key.outer;
}

/* Tunnels in tunnels are payload. */
static void parse_inner(struct rnic_frame *f, struct cursor *c,
			const struct rnic_headers *h, uint32_t type)
{
	if (!is_outer(f, h))
		return;
	if (type == TYPE_ETHERNET)
		parse_ethernet(f, c, &f->key.inner);
	else
		parse_type(f, c, &f->key.inner, type);
}

static void parse_vxlan(struct rnic_frame *f, struct cursor *c,
			struct rnic_headers *h)
{
	const uint8_t *p = take(c, 8);

	if (!p || !(p[0] & 8)) /* the VNI is valid */
		return;
	h->layers |= RNIC_LAYER_VXLAN;
	memcpy((uint8_t *)&h->vni + 1, p + 4, 3);
	parse_inner(f, c, h, TYPE_ETHERNET);
}

static void parse_gre(struct rnic_frame *f, struct cursor *c,
		      struct rnic_headers *h)
{
	const uint8_t *p = take(c, 4), *key;

	if (!p)
		return;
	if (p[0] & 0x80 && !take(c, 4)) /* checksum */
		return;
	if (p[0] & 0x20) {
		key = take(c, 4);
		if (!key)
			return;
		memcpy(&h->gre_key, key, 4);
	}
	if (p[0] & 0x10 && !take(c, 4)) /* sequence number */
		return;
	h->layers |= RNIC_LAYER_GRE;
	memcpy(&h->gre_flags, p, 2);
	memcpy(&h->gre_protocol, p + 2, 2);
	parse_inner(f, c, h, be16(p + 2));
}

static void parse_ports(struct rnic_frame *f, struct cursor *c,
			struct rnic_headers *h, uint32_t layer, uint32_t len)
{
	const uint8_t *p = take(c, len);

	if (!p)
		return;
	h->layers |= layer;
	memcpy(&h->src_port, p, 2);
	memcpy(&h->dst_port, p + 2, 2);
	if (is_outer(f, h))
		f->l4 = c->off - len;
	if (layer == RNIC_LAYER_UDP && be16(p + 2) == PORT_VXLAN)
		parse_vxlan(f, c, h);
}

static void parse_l4(struct rnic_frame *f, struct cursor *c,
		     struct rnic_headers *h, uint32_t proto)
{
	const uint8_t *p;

	switch (proto) {
	case PROTO_TCP:
		parse_ports(f, c, h, RNIC_LAYER_TCP, 20);
		break;
	case PROTO_UDP:
		parse_ports(f, c, h, RNIC_LAYER_UDP, 8);
		break;
	case PROTO_ESP:
		p = take(c, 8);
		if (!p)
			break;
		h->layers |= RNIC_LAYER_ESP;
		memcpy(&h->spi, p, 4);
		memcpy(&h->seq, p + 4, 4);
		break;
	case PROTO_GRE:
		parse_gre(f, c, h);
		break;
	case PROTO_IPV4:
		parse_inner(f, c, h, TYPE_IPV4);
		break;
	case PROTO_IPV6:
		parse_inner(f, c, h, TYPE_IPV6);
		break;
	}
}

static void parse_ipv4(struct rnic_frame *f, struct cursor *c,
		       struct rnic_headers *h)
{
	const uint8_t *p = peek(c, 20);
	uint32_t len = p ? (p[0] & 0xf) * 4u : 0, frag;

	if (!p || p[0] >> 4 != 4 || len < 20 || !take(c, len))
		return;
	h->layers |= RNIC_LAYER_IPV4;
	h->tos = p[1];
	frag = be16(p + 6);
	h->ip_flags = (frag & 0x4000 ? RNIC_IP_DONT_FRAG : 0) |
		      (frag & 0x2000 ? RNIC_IP_MORE_FRAG : 0);
	h->ttl = p[8];
	h->proto = p[9];
	memcpy(h->src_ip, p + 12, 4);
	memcpy(h->dst_ip, p + 16, 4);
	if (is_outer(f, h)) {
		f->l3 = c->off - len;
		f->l4_len = be16(p + 2) > len ? be16(p + 2) - len : 0;
	}
	if (!(frag & 0x1fff))
		parse_l4(f, c, h, h->proto);
}

/* The protocol behind the extension headers; false: none that can be read. */
static bool skip_extensions(struct rnic_frame *f, struct cursor *c,
			    struct rnic_headers *h, uint32_t *proto)
{
	uint32_t n;

	for (n = 0; n < MAX_TAGS; n++) {
		const uint8_t *p = peek(c, 8);
		uint32_t len = 8;

		if (*proto != PROTO_HOP && *proto != PROTO_ROUTING &&
		    *proto != PROTO_OPTIONS && *proto != PROTO_FRAGMENT)
			return true;
		if (!p)
			return false;
		if (*proto == PROTO_FRAGMENT) {
			if (be16(p + 2) & 1)
				h->ip_flags |= RNIC_IP_MORE_FRAG;
			if (be16(p + 2) & 0xfff8)
				return false;
		} else {
			len += p[1] * 8u;
		}
		*proto = p[0];
		if (!take(c, len))
			return false;
		if (is_outer(f, h))
			f->l4_len = f->l4_len > len ? f->l4_len - len : 0;
	}
	return false;
}

static void parse_ipv6(struct rnic_frame *f, struct cursor *c,
		       struct rnic_headers *h)
{
	const uint8_t *p = peek(c, 40);
	uint32_t proto;

	if (!p || p[0] >> 4 != 6)
		return;
	take(c, 40);
	h->layers |= RNIC_LAYER_IPV6;
	h->tos = (uint32_t)p[0] << 4 | p[1] >> 4;
	memcpy((uint8_t *)&h->flow_label + 1, p + 1, 3);
	((uint8_t *)&h->flow_label)[1] &= 0xf;
	h->proto = p[6];
	h->ttl = p[7];
	memcpy(h->src_ip, p + 8, 16);
	memcpy(h->dst_ip, p + 24, 16);
	if (is_outer(f, h)) {
		f->l3 = c->off - 40;
		f->l4_len = be16(p + 4);
	}
	proto = h->proto;
	if (skip_extensions(f, c, h, &proto))
		parse_l4(f, c, h, proto);
}

static void parse_mpls(struct rnic_frame *f, struct cursor *c,
		       struct rnic_headers *h)
{
	const uint8_t *p;
	uint32_t n;

	for (n = 0; n < MAX_TAGS; n++) {
		p = take(c, 4);
		if (!p)
			return;
		if (!n)
			memcpy(&h->mpls, p, 4);
		h->layers |= RNIC_LAYER_MPLS;
		if (!(p[2] & 1)) /* not the bottom of the stack */
			continue;
		p = peek(c, 1);
		if (p && p[0] >> 4 == 4)
			parse_ipv4(f, c, h);
		else if (p && p[0] >> 4 == 6)
			parse_ipv6(f, c, h);
		return;
	}
}

static void parse_type(struct rnic_frame *f, struct cursor *c,
		       struct rnic_headers *h, uint32_t type)
{
	switch (type) {
	case TYPE_IPV4:
		parse_ipv4(f, c, h);
		break;
	case TYPE_IPV6:
		parse_ipv6(f, c, h);
		break;
	case TYPE_MPLS:
	case TYPE_MPLS_GROUP:
		parse_mpls(f, c, h);
		break;
	}
}

static void parse_ethernet(struct rnic_frame *f, struct cursor *c,
			   struct rnic_headers *h)
{
	const uint8_t *p = take(c, 14), *type, *tag;
	uint32_t n;

	if (!p)
		return;
	h->layers |= RNIC_LAYER_ETH;
	memcpy(h->dst_mac, p, 6);
	memcpy(h->src_mac, p + 6, 6);
	type = p + 12;
	for (n = 0; n < MAX_TAGS; n++) {
		if (be16(type) != TYPE_VLAN && be16(type) != TYPE_QINQ)
			break;
		tag = take(c, 4);
		if (!tag)
			break;
		if (!n)
			memcpy(&h->vlan_tag, tag, 2);
		h->layers |= RNIC_LAYER_VLAN;
		type = tag + 2;
	}
	memcpy(&h->ether_type, type, 2);
	parse_type(f, c, h, be16(type));
}

void rnic_frame_parse(struct rnic_frame *frame, uint8_t *data, uint32_t len)
{
	struct cursor c = {frame, 0};

	memset(frame, 0, sizeof(*frame));
	frame->data = data;
	frame->len = len;
	parse_ethernet(frame, &c, &frame->key.outer);
}

/* ---- checksums (RFC 1071) ------------------------------------------- */

static uint32_t sum(uint32_t s, const uint8_t *p, uint32_t len)
{
	uint64_t wide = s;

	for (; len > 1; p += 2, len -= 2)
		wide += be16(p);
	if (len)
		wide += (uint32_t)p[0] << 8;
	while (wide >> 16)
		wide = (wide & 0xffff) + (wide >> 16);
	return wide;
}

static uint32_t l3_len(const struct rnic_frame *f)
{
	return (f->data[f->l3] & 0xf) * 4u;
}

/* Bytes of the field that is covered by the checksum of TCP or UDP. */
static bool l4_whole(const struct rnic_frame *f)
{
	return f->l4 && f->l4_len >= 8 && f->l4_len <= f->len - f->l4 &&
	       !(f->key.outer.ip_flags & RNIC_IP_MORE_FRAG);
}

static uint8_t *l4_field(const struct rnic_frame *f)
{
	return f->data + f->l4 +
	       (f->key.outer.layers & RNIC_LAYER_TCP ? 16 : 6);
}

static uint32_t l4_sum(const struct rnic_frame *f)
{
	const struct rnic_headers *h = &f->key.outer;
	uint32_t addr = h->layers & RNIC_LAYER_IPV4 ? 4 : 16, s;

	s = h->layers & RNIC_LAYER_TCP ? PROTO_TCP : PROTO_UDP;
	s = sum(s + f->l4_len, h->src_ip, addr);
	s = sum(s, h->dst_ip, addr);
	return sum(s, f->data + f->l4, f->l4_len);
}

bool rnic_frame_checksums_ok(const struct rnic_frame *f)
{
	if (!(f->key.outer.layers & RNIC_LAYER_IPV4) || !l4_whole(f) ||
	    sum(0, f->data + f->l3, l3_len(f)) != 0xffff)
		return false;
	if (f->key.outer.layers & RNIC_LAYER_UDP && !be16(l4_field(f)))
		return true; /* RFC 768: none was computed */
	return l4_sum(f) == 0xffff;
}

void rnic_frame_write_checksums(struct rnic_frame *f)
{
	uint32_t s;

	if (f->key.outer.layers & RNIC_LAYER_IPV4) {
		put_be16(f->data + f->l3 + 10, 0);
		s = ~sum(0, f->data + f->l3, l3_len(f)) & 0xffff;
		put_be16(f->data + f->l3 + 10, s);
	}
	if (!l4_whole(f) ||
	    (f->key.outer.layers & RNIC_LAYER_TCP && f->l4_len < 20))
		return;
	put_be16(l4_field(f), 0);
	s = ~l4_sum(f) & 0xffff;
	/* 0 says that there is none. */
	put_be16(l4_field(f), s ? s : 0xffff);
}

/* ---- receive-side scaling ------------------------------------------- */

uint32_t rnic_toeplitz(const uint8_t key[RNIC_HASH_KEY], const uint8_t *data,
		       uint32_t len)
{
	uint32_t window = be16(key) << 16 | be16(key + 2), hash = 0, i, bit;

	for (i = 0; i < len; i++) {
		for (bit = 0; bit < 8; bit++) {
			if (data[i] & 0x80 >> bit)
				hash ^= window;
			window = window << 1 | (key[i + 4] >> (7 - bit) & 1);
		}
	}
	return hash;
}

/* In this order: source before destination, addresses before ports. */
uint32_t rnic_frame_hash(const struct rnic_frame *frame,
			 const struct rnic_hash *hash)
{
	const struct rnic_headers *h = hash->fields & RNIC_HASH_INNER ?
					       &frame->key.inner :
					       &frame->key.outer;
	const struct {
		uint32_t field, layer;
		const void *at;
		uint32_t len;
	} parts[] = {
		{RNIC_HASH_SRC_IPV4, RNIC_LAYER_IPV4, h->src_ip, 4},
		{RNIC_HASH_DST_IPV4, RNIC_LAYER_IPV4, h->dst_ip, 4},
		{RNIC_HASH_SRC_IPV6, RNIC_LAYER_IPV6, h->src_ip, 16},
		{RNIC_HASH_DST_IPV6, RNIC_LAYER_IPV6, h->dst_ip, 16},
		{RNIC_HASH_SRC_PORT_TCP, RNIC_LAYER_TCP, &h->src_port, 2},
		{RNIC_HASH_DST_PORT_TCP, RNIC_LAYER_TCP, &h->dst_port, 2},
		{RNIC_HASH_SRC_PORT_UDP, RNIC_LAYER_UDP, &h->src_port, 2},
		{RNIC_HASH_DST_PORT_UDP, RNIC_LAYER_UDP, &h->dst_port, 2},
		{RNIC_HASH_IPSEC_SPI, RNIC_LAYER_ESP, &h->spi, 4},
	};
	uint8_t data[RNIC_HASH_KEY - 4]; /* two IPv6 addresses and ports */
	uint32_t i, len = 0;

	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (!(hash->fields & parts[i].field) ||
		    !(h->layers & parts[i].layer))
			continue;
		memcpy(data + len, parts[i].at, parts[i].len);
		len += parts[i].len;
	}
	return rnic_toeplitz(hash->key, data, len);
}

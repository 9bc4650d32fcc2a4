// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Raw packets: what a frame says, who gets it, receive-side scaling. */
#include "rnic_fixture.h"

struct rig {
	struct fx fx;
	struct fx_end a, b, c; /* c: of b's device */
	struct fx_mr am, bm, cm;
};

static struct rig g;

#define TEST(name) static void name(void **state __attribute__((unused)))

/* ---- frames ---------------------------------------------------------- */

struct bytes {
	uint8_t at[256];
	uint32_t len;
};

static void put(struct bytes *b, const void *p, uint32_t len)
{
	memcpy(b->at + b->len, p, len);
	b->len += len;
}

static void put16(struct bytes *b, uint32_t v)
{
	put(b, (uint8_t[]){v >> 8, v}, 2);
}

static void put32(struct bytes *b, uint32_t v)
{
	put16(b, v >> 16);
	put16(b, v & 0xffff);
}

static void put_eth(struct bytes *b, uint32_t type)
{
	put(b, "\x01\x50\x56\x19\x20\xa7\x24\x8a\x07\xa5\x28\xc8", 12);
	put16(b, type);
}

static void put_ipv4(struct bytes *b, uint32_t proto, uint32_t payload)
{
	put(b, (uint8_t[]){0x45, 0x1a}, 2);
	put16(b, 20 + payload);
	put32(b, 0x00074000); /* id, do not fragment */
	put(b, (uint8_t[]){64, proto, 0, 0}, 4);
	put32(b, 0x01010101);
	put32(b, 0x02020202);
}

static void put_ipv6(struct bytes *b, uint32_t proto, uint32_t payload)
{
	uint32_t i;

	put32(b, 0x6 << 28 | 0x5a << 20 | 0xabcde);
	put16(b, payload);
	put(b, (uint8_t[]){proto, 9}, 2);
	for (i = 0; i < 32; i++)
		put(b, (uint8_t[]){0xa0 + i}, 1);
}

static void put_udp(struct bytes *b, uint32_t port, uint32_t payload)
{
	put16(b, 1234);
	put16(b, port);
	put16(b, 8 + payload);
	put16(b, 0);
}

static void put_tcp(struct bytes *b)
{
	put16(b, 1234);
	put16(b, 80);
	put32(b, 1);
	put32(b, 2);
	put32(b, 0x50000064);
	put32(b, 0);
}

static struct bytes udp_frame(void)
{
	struct bytes b = {.len = 0};

	put_eth(&b, 0x0800);
	put_ipv4(&b, 17, 8 + 22);
	put_udp(&b, 5678, 22);
	put(&b, "the payload of a frame", 22);
	return b;
}

static uint16_t net16(uint16_t v)
{
	return v << 8 | v >> 8;
}

static uint32_t net32(uint32_t v)
{
	return __builtin_bswap32(v);
}

static struct rnic_flow_key parse(const struct bytes *b)
{
	static uint8_t data[256];
	struct rnic_frame frame;

	memcpy(data, b->at, b->len);
	rnic_frame_parse(&frame, data, b->len);
	return frame.key;
}

TEST(headers_are_where_the_specifications_say)
{
	struct bytes b = {.len = 0};
	struct rnic_flow_key k;

	put_eth(&b, 0x88a8);
	put32(&b, 0x20058100); /* TCI, the next tag */
	put32(&b, 0xac0c0800);
	put_ipv4(&b, 6, 20);
	put_tcp(&b);
	k = parse(&b);
	assert_int_equal(k.outer.layers, RNIC_LAYER_ETH | RNIC_LAYER_VLAN |
						 RNIC_LAYER_IPV4 |
						 RNIC_LAYER_TCP);
	assert_memory_equal(k.outer.dst_mac, "\x01\x50\x56\x19\x20\xa7", 6);
	assert_memory_equal(k.outer.src_mac, "\x24\x8a\x07\xa5\x28\xc8", 6);
	assert_int_equal(k.outer.vlan_tag, net16(0x2005));
	assert_int_equal(k.outer.ether_type, net16(0x0800));
	assert_int_equal(k.outer.tos, 0x1a);
	assert_int_equal(k.outer.ttl, 64);
	assert_int_equal(k.outer.proto, 6);
	assert_int_equal(k.outer.ip_flags, RNIC_IP_DONT_FRAG);
	assert_memory_equal(k.outer.src_ip, "\1\1\1\1\0\0\0\0\0\0\0\0\0\0\0\0",
			    16);
	assert_memory_equal(k.outer.dst_ip, "\2\2\2\2", 4);
	assert_int_equal(k.outer.src_port, net16(1234));
	assert_int_equal(k.outer.dst_port, net16(80));
}

TEST(ipv6_is_read_through_its_extensions)
{
	static const uint8_t options[8] = {17};
	struct bytes b = {.len = 0};
	struct rnic_flow_key k;

	put_eth(&b, 0x86dd);
	put_ipv6(&b, 0, 16 + 4);
	put(&b, options, 8);
	put_udp(&b, 53, 4);
	put(&b, "four", 4);
	k = parse(&b);
	assert_int_equal(k.outer.layers,
			 RNIC_LAYER_ETH | RNIC_LAYER_IPV6 | RNIC_LAYER_UDP);
	assert_int_equal(k.outer.flow_label, net32(0xabcde));
	assert_int_equal(k.outer.tos, 0x5a);
	assert_int_equal(k.outer.proto, 0); /* that of the header itself */
	assert_int_equal(k.outer.ttl, 9);
	assert_int_equal(k.outer.src_ip[15], 0xaf);
	assert_int_equal(k.outer.dst_ip[0], 0xb0);
	assert_int_equal(k.outer.dst_port, net16(53));
}

TEST(a_later_fragment_has_no_ports)
{
	struct bytes b = udp_frame();

	b.at[14 + 7] = 5; /* fragment offset */
	assert_int_equal(parse(&b).outer.layers,
			 RNIC_LAYER_ETH | RNIC_LAYER_IPV4);
}

TEST(tunnels_have_a_second_set_of_headers)
{
	struct bytes inner = udp_frame(), b = {.len = 0};
	struct rnic_flow_key k;

	put_eth(&b, 0x0800);
	put_ipv4(&b, 17, 16 + inner.len);
	put_udp(&b, 4789, 8 + inner.len);
	put32(&b, 0x08000000);
	put32(&b, 0x76adf1 << 8);
	put(&b, inner.at, inner.len);
	k = parse(&b);
	assert_int_equal(k.outer.layers, RNIC_LAYER_ETH | RNIC_LAYER_IPV4 |
						 RNIC_LAYER_UDP |
						 RNIC_LAYER_VXLAN);
	assert_int_equal(k.outer.vni, net32(0x76adf1));
	assert_int_equal(k.inner.layers,
			 RNIC_LAYER_ETH | RNIC_LAYER_IPV4 | RNIC_LAYER_UDP);
	assert_int_equal(k.inner.dst_port, net16(5678));

	b.len = 0;
	put_eth(&b, 0x86dd);
	put_ipv6(&b, 47, 12 + inner.len);
	put32(&b, 0x20006558); /* with a key; a frame */
	put32(&b, 0x5eed);
	put(&b, inner.at, inner.len);
	k = parse(&b);
	assert_int_equal(k.outer.layers,
			 RNIC_LAYER_ETH | RNIC_LAYER_IPV6 | RNIC_LAYER_GRE);
	assert_int_equal(k.outer.gre_flags, net16(0x2000));
	assert_int_equal(k.outer.gre_protocol, net16(0x6558));
	assert_int_equal(k.outer.gre_key, net32(0x5eed));
	assert_true(k.inner.layers & RNIC_LAYER_UDP);

	b.len = 0;
	put_eth(&b, 0x8847);
	put32(&b, 0x12345040); /* not the bottom */
	put32(&b, 0x56789140);
	put_ipv4(&b, 50, 8);
	put32(&b, 0x1234);
	put32(&b, 77);
	k = parse(&b);
	assert_int_equal(k.outer.layers, RNIC_LAYER_ETH | RNIC_LAYER_MPLS |
						 RNIC_LAYER_IPV4 |
						 RNIC_LAYER_ESP);
	assert_int_equal(k.outer.mpls, net32(0x12345040));
	assert_int_equal(k.outer.spi, net32(0x1234));
	assert_int_equal(k.outer.seq, net32(77));
}

TEST(what_is_cut_off_is_not_there)
{
	struct bytes b = udp_frame();
	uint32_t len, last = 0;

	for (len = 0; len <= b.len; len++) {
		struct bytes cut = b;
		uint32_t layers;

		cut.len = len;
		layers = parse(&cut).outer.layers;
		assert_int_equal(!!(layers & RNIC_LAYER_ETH), len >= 14);
		assert_int_equal(!!(layers & RNIC_LAYER_IPV4), len >= 34);
		assert_int_equal(!!(layers & RNIC_LAYER_UDP), len >= 42);
		assert_int_equal(layers & last, last);
		last = layers;
	}
}

TEST(checksums_that_were_written_are_right_and_one_bit_tells)
{
	struct bytes b = udp_frame();
	struct rnic_frame frame;
	uint32_t i;

	rnic_frame_parse(&frame, b.at, b.len);
	assert_false(rnic_frame_checksums_ok(&frame));
	rnic_frame_write_checksums(&frame);
	assert_true(rnic_frame_checksums_ok(&frame));
	/* As another implementation has computed them. */
	assert_int_equal(b.at[24] << 8 | b.at[25], 0x3495);
	assert_int_equal(b.at[40] << 8 | b.at[41], 0xb7df);
	for (i = 14; i < b.len; i++) {
		b.at[i] ^= 0x10;
		rnic_frame_parse(&frame, b.at, b.len);
		assert_false(rnic_frame_checksums_ok(&frame));
		b.at[i] ^= 0x10;
	}
	/* A sum of 0 is written as its other form: 0 says that there is none.
	 */
	i = (uint32_t)(b.at[42] << 8 | b.at[43]) + 0xb7df;
	i = (i & 0xffff) + (i >> 16);
	b.at[42] = i >> 8;
	b.at[43] = i;
	rnic_frame_parse(&frame, b.at, b.len);
	rnic_frame_write_checksums(&frame);
	assert_int_equal(b.at[40] << 8 | b.at[41], 0xffff);
	assert_true(rnic_frame_checksums_ok(&frame));
	/* UDP over IPv4 may go without. */
	b.at[40] = b.at[41] = 0;
	rnic_frame_parse(&frame, b.at, b.len);
	assert_true(rnic_frame_checksums_ok(&frame));
}

/* ---- the hash -------------------------------------------------------- */

/* "Verifying the RSS hash calculation", Microsoft, NDIS. */
static const uint8_t microsoft[RNIC_HASH_KEY] = {
	0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67,
	0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb,
	0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
	0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};

TEST(the_hash_has_the_known_values)
{
	static const struct {
		uint8_t src[4], dst[4];
		uint16_t src_port, dst_port;
		uint32_t with_ports, without;
	} v4[] = {
		{{66, 9, 149, 187},
		 {161, 142, 100, 80},
		 2794,
		 1766,
		 0x51ccc178,
		 0x323e8fc2},
		{{199, 92, 111, 2},
		 {65, 69, 140, 83},
		 14230,
		 4739,
		 0xc626b0ea,
		 0xd718262a},
		{{24, 19, 198, 95},
		 {12, 22, 207, 184},
		 12898,
		 38024,
		 0x5c2b394a,
		 0xd2d0a5de},
		{{38, 27, 205, 30},
		 {209, 142, 163, 6},
		 48228,
		 2217,
		 0xafc7327f,
		 0x82989176},
		{{153, 39, 163, 191},
		 {202, 188, 127, 2},
		 44251,
		 1303,
		 0x10e828a2,
		 0x5d1809c5},
	};
	struct rnic_frame f = {.len = 0};
	struct rnic_headers *h = &f.key.outer;
	struct rnic_hash hash = {.fields = RNIC_HASH_SRC_IPV4 |
					   RNIC_HASH_DST_IPV4};
	uint32_t i;

	memcpy(hash.key, microsoft, sizeof(microsoft));
	h->layers = RNIC_LAYER_IPV4 | RNIC_LAYER_TCP;
	for (i = 0; i < sizeof(v4) / sizeof(v4[0]); i++) {
		memcpy(h->src_ip, v4[i].src, 4);
		memcpy(h->dst_ip, v4[i].dst, 4);
		h->src_port = net16(v4[i].src_port);
		h->dst_port = net16(v4[i].dst_port);
		hash.fields = RNIC_HASH_SRC_IPV4 | RNIC_HASH_DST_IPV4;
		assert_int_equal(rnic_frame_hash(&f, &hash), v4[i].without);
		hash.fields |= RNIC_HASH_SRC_PORT_TCP | RNIC_HASH_DST_PORT_TCP;
		assert_int_equal(rnic_frame_hash(&f, &hash), v4[i].with_ports);
	}
}

TEST(the_hash_of_ipv6_has_the_known_values)
{
	static const uint8_t src[16] = {0x3f, 0xfe, 0x25, 0x01,	   0x02,
					0x00, 0x1f, 0xff, [15] = 7};
	static const uint8_t dst[16] = {0x3f, 0xfe, 0x25, 0x01,	   0x02,
					0x00, 0x00, 0x03, [15] = 1};
	struct rnic_frame f = {.len = 0};
	struct rnic_headers *h = &f.key.outer;
	struct rnic_hash hash = {.fields = RNIC_HASH_SRC_IPV6 |
					   RNIC_HASH_DST_IPV6};

	memcpy(hash.key, microsoft, sizeof(microsoft));
	h->layers = RNIC_LAYER_IPV6 | RNIC_LAYER_UDP;
	memcpy(h->src_ip, src, 16);
	memcpy(h->dst_ip, dst, 16);
	h->src_port = net16(2794);
	h->dst_port = net16(1766);
	assert_int_equal(rnic_frame_hash(&f, &hash), 0x2cc18cd5);
	hash.fields |= RNIC_HASH_SRC_PORT_UDP | RNIC_HASH_DST_PORT_UDP;
	assert_int_equal(rnic_frame_hash(&f, &hash), 0x40207d3d);
	/* Of a field that the frame does not have there is nothing to hash. */
	hash.fields = RNIC_HASH_SRC_IPV4 | RNIC_HASH_SRC_PORT_TCP;
	assert_int_equal(rnic_frame_hash(&f, &hash), 0);
}

/* ---- steering -------------------------------------------------------- */

static void open_end(struct fx_end *e, struct fx_mr *mr, uint32_t ctx,
		     uint32_t dev, uint32_t type)
{
	struct fx_opts o = fx_defaults;

	o.type = type;
	fx_end_new(e, &g.fx, g.fx.r, ctx, dev, &o);
	if (type == RNIC_QPT_RAW_PACKET)
		fx_connect(e, e, RNIC_RTS, &o, 0, 0);
	*mr = fx_mr(e, 1 << 16, FX_ALL_ACCESS);
}

static int setup(void **state)
{
	static const uint8_t gid[16] = {0xfe, 0x80, [15] = 1};
	uint32_t dev;

	(void)state;
	memset(&g, 0, sizeof(g));
	fx_open(&g.fx, RNIC_ETHERNET);
	for (dev = 0; dev < 2; dev++)
		assert_int_equal(rnic_port_add_gid(g.fx.r, dev, 1, gid), 0);
	open_end(&g.a, &g.am, 1, 0, RNIC_QPT_RAW_PACKET);
	open_end(&g.b, &g.bm, 2, 1, RNIC_QPT_RAW_PACKET);
	open_end(&g.c, &g.cm, 3, 1, RNIC_QPT_RAW_PACKET);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fx_close(&g.fx);
	return 0;
}

static struct rnic_flow_attr rule(const struct fx_end *e)
{
	return (struct rnic_flow_attr){.qpn = e->qpn, .port = 1};
}

static uint32_t add_rule(const struct fx_end *e,
			 const struct rnic_flow_attr *attr)
{
	uint32_t flow;

	assert_int_equal(rnic_flow_create(g.fx.r, e->ctx, attr, &flow), 0);
	return flow;
}

static void del_rule(const struct fx_end *e, uint32_t flow)
{
	assert_int_equal(rnic_flow_destroy(g.fx.r, e->ctx, flow), 0);
}

static void send_frame(const struct bytes *b, uint32_t flags)
{
	struct fx_wr wr = {
		.opcode = SF_OP_SEND,
		.flags = SF_WQE_SIGNALED | flags,
		.n_sge = 1,
		.sge = {fx_sge(&g.am, 0, b->len)},
	};

	memcpy(g.am.ptr, b->at, b->len);
	expect_ok(&g.a.scq, SF_OP_SEND, fx_send(&g.a, &wr));
}

/* Does @e get the frame? */
static bool gets(struct fx_end *e, const struct fx_mr *mr,
		 const struct bytes *b)
{
	static uint32_t cookie;
	struct sf_cqe cqe;

	fx_recv_mr(e, ++cookie, mr, 0, 256);
	send_frame(b, 0);
	if (!fx_poll(&e->rcq, &cqe)) {
		e->rq_next--; /* nobody has taken it */
		((struct sf_doorbell *)rnic_at(e->r, e->mem.doorbells))[1]
			.value = e->rq_next;
		return false;
	}
	assert_int_equal(cqe.wr, cookie);
	assert_int_equal(cqe.qpn, e->qpn);
	assert_int_equal(cqe.byte_len, b->len);
	assert_memory_equal(mr->ptr, b->at, b->len);
	return true;
}

TEST(a_frame_that_no_rule_wants_is_dropped)
{
	struct bytes b = udp_frame();

	assert_false(gets(&g.b, &g.bm, &b));
}

TEST(a_rule_brings_the_frame_with_its_tag)
{
	struct rnic_flow_attr attr = rule(&g.b);
	struct bytes b = udp_frame();
	struct sf_cqe cqe;
	uint32_t flow;

	attr.tag = 0xabcdef;
	flow = add_rule(&g.b, &attr);
	fx_recv_mr(&g.b, 7, &g.bm, 0, 256);
	send_frame(&b, 0);
	cqe = expect_ok(&g.b.rcq, SF_CQE_RECV, 7);
	assert_int_equal(cqe.imm, 0xabcdef);
	assert_int_equal(cqe.byte_len, b.len);
	assert_int_equal(sf_cqe_flags(cqe.word), 0); /* no checksum in it */
	assert_memory_equal(g.bm.ptr, b.at, b.len);
	expect_no_cqe(&g.c.rcq);

	fx_recv_mr(&g.b, 8, &g.bm, 0, 256);
	send_frame(&b, SF_WQE_CHECKSUMS);
	cqe = expect_ok(&g.b.rcq, SF_CQE_RECV, 8);
	assert_int_equal(sf_cqe_flags(cqe.word), SF_CQE_CHECKSUMS_OK);
	/* The sender's own copy is as it was. */
	assert_memory_equal(g.am.ptr, b.at, b.len);
	assert_memory_equal(g.bm.ptr + 24, "\x34\x95", 2);

	del_rule(&g.b, flow);
	assert_false(gets(&g.b, &g.bm, &b));
}

#define FIELD(member, layer)                                               \
	{                                                                  \
		offsetof(struct rnic_headers, member),                     \
			sizeof(((struct rnic_headers *)0)->member), layer, \
	}

TEST(each_field_of_a_rule_decides)
{
	static const struct {
		size_t at, len;
		uint32_t layer;
	} fields[] = {
		FIELD(dst_mac, RNIC_LAYER_ETH),
		FIELD(src_mac, RNIC_LAYER_ETH),
		FIELD(ether_type, RNIC_LAYER_ETH),
		FIELD(src_ip, RNIC_LAYER_IPV4),
		FIELD(dst_ip, RNIC_LAYER_IPV4),
		FIELD(proto, RNIC_LAYER_IPV4),
		FIELD(tos, RNIC_LAYER_IPV4),
		FIELD(ttl, RNIC_LAYER_IPV4),
		FIELD(ip_flags, RNIC_LAYER_IPV4),
		FIELD(src_port, RNIC_LAYER_UDP),
		FIELD(dst_port, RNIC_LAYER_UDP),
	};
	struct bytes b = udp_frame();
	struct rnic_flow_key key = parse(&b);
	size_t i, byte;
	uint32_t flow;

	for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		struct rnic_flow_attr attr = rule(&g.b);
		uint8_t *v = (uint8_t *)&attr.value.outer + fields[i].at;

		attr.value.outer.layers = attr.mask.outer.layers =
			fields[i].layer;
		memset((uint8_t *)&attr.mask.outer + fields[i].at, 0xff,
		       fields[i].len);
		memcpy(v, (uint8_t *)&key.outer + fields[i].at, fields[i].len);
		flow = add_rule(&g.b, &attr);
		assert_true(gets(&g.b, &g.bm, &b));
		del_rule(&g.b, flow);
		for (byte = 0; byte < fields[i].len; byte++) {
			v[byte] ^= 0x40;
			flow = add_rule(&g.b, &attr);
			assert_false(gets(&g.b, &g.bm, &b));
			del_rule(&g.b, flow);
			/* Under the mask only. */
			((uint8_t *)&attr.mask.outer)[fields[i].at + byte] =
				0xbf;
			flow = add_rule(&g.b, &attr);
			assert_true(gets(&g.b, &g.bm, &b));
			del_rule(&g.b, flow);
			((uint8_t *)&attr.mask.outer)[fields[i].at + byte] =
				0xff;
			v[byte] ^= 0x40;
		}
	}
}

TEST(a_rule_for_a_layer_wants_that_layer)
{
	static const uint32_t layers[] = {RNIC_LAYER_VLAN, RNIC_LAYER_IPV6,
					  RNIC_LAYER_TCP,  RNIC_LAYER_ESP,
					  RNIC_LAYER_MPLS, RNIC_LAYER_VXLAN,
					  RNIC_LAYER_GRE};
	struct bytes b = udp_frame();
	uint32_t i, flow;

	for (i = 0; i < sizeof(layers) / sizeof(layers[0]); i++) {
		struct rnic_flow_attr attr = rule(&g.b);

		attr.value.outer.layers = attr.mask.outer.layers = layers[i];
		flow = add_rule(&g.b, &attr);
		assert_false(gets(&g.b, &g.bm, &b));
		del_rule(&g.b, flow);
	}
}

TEST(the_lowest_priority_number_wins_and_equals_share)
{
	struct rnic_flow_attr b_attr = rule(&g.b), c_attr = rule(&g.c);
	struct bytes b = udp_frame();
	uint32_t b_rule, c_rule;

	b_attr.priority = c_attr.priority = 1;
	b_rule = add_rule(&g.b, &b_attr);
	c_rule = add_rule(&g.c, &c_attr);
	assert_true(gets(&g.b, &g.bm, &b));
	assert_true(gets(&g.c, &g.cm, &b));
	del_rule(&g.c, c_rule);
	c_attr.priority = 0;
	c_rule = add_rule(&g.c, &c_attr);
	assert_false(gets(&g.b, &g.bm, &b));
	assert_true(gets(&g.c, &g.cm, &b));
	del_rule(&g.c, c_rule);
	/* It lets others have their say. */
	c_attr.flags = RNIC_FLOW_DONT_TRAP;
	c_rule = add_rule(&g.c, &c_attr);
	assert_true(gets(&g.b, &g.bm, &b));
	assert_true(gets(&g.c, &g.cm, &b));
	del_rule(&g.c, c_rule);
	c_attr.flags = RNIC_FLOW_DROP;
	c_rule = add_rule(&g.c, &c_attr);
	assert_false(gets(&g.b, &g.bm, &b));
	assert_false(gets(&g.c, &g.cm, &b));
	del_rule(&g.c, c_rule);
	c_attr.priority = 2; /* too late */
	c_rule = add_rule(&g.c, &c_attr);
	assert_true(gets(&g.b, &g.bm, &b));
	del_rule(&g.b, b_rule);
	del_rule(&g.c, c_rule);
}

TEST(defaults_come_last_and_a_sniffer_sees_all)
{
	struct rnic_flow_attr normal = rule(&g.b), other = rule(&g.c);
	struct bytes b = udp_frame(), unicast = b;
	uint32_t n, o;

	unicast.at[0] = 0;
	normal.priority = 100;
	n = add_rule(&g.b, &normal);
	other.type = RNIC_FLOW_ALL_DEFAULT;
	o = add_rule(&g.c, &other);
	assert_true(gets(&g.b, &g.bm, &b));
	assert_false(gets(&g.c, &g.cm, &b));
	del_rule(&g.b, n);
	assert_true(gets(&g.c, &g.cm, &b));
	assert_true(gets(&g.c, &g.cm, &unicast));
	del_rule(&g.c, o);

	other.type = RNIC_FLOW_MC_DEFAULT;
	o = add_rule(&g.c, &other);
	assert_true(gets(&g.c, &g.cm, &b));
	assert_false(gets(&g.c, &g.cm, &unicast));
	del_rule(&g.c, o);

	other.type = RNIC_FLOW_SNIFFER;
	o = add_rule(&g.c, &other);
	normal.flags = RNIC_FLOW_DROP;
	n = add_rule(&g.b, &normal);
	assert_true(gets(&g.c, &g.cm, &b));
	assert_false(gets(&g.b, &g.bm, &b));
	del_rule(&g.b, n);
	del_rule(&g.c, o);
}

TEST(two_rules_for_one_queue_pair_bring_one_copy)
{
	struct rnic_flow_attr attr = rule(&g.b);
	struct bytes b = udp_frame();
	uint32_t first, second;

	first = add_rule(&g.b, &attr);
	second = add_rule(&g.b, &attr);
	fx_recv_mr(&g.b, 1, &g.bm, 0, 256);
	fx_recv_mr(&g.b, 2, &g.bm, 0, 256);
	send_frame(&b, 0);
	expect_ok(&g.b.rcq, SF_CQE_RECV, 1);
	expect_no_cqe(&g.b.rcq);
	del_rule(&g.b, first);
	send_frame(&b, 0);
	expect_ok(&g.b.rcq, SF_CQE_RECV, 2);
	del_rule(&g.b, second);
}

TEST(counters_count_frames_and_bytes_that_match)
{
	struct rnic_flow_attr attr = rule(&g.b);
	struct bytes b = udp_frame();
	struct rnic_flow_count count;
	uint32_t id, flow;

	assert_int_equal(rnic_flow_counters_create(g.fx.r, 2, 1, &id), 0);
	assert_int_equal(rnic_flow_counters_read(g.fx.r, 2, id, &count),
			 EINVAL); /* no rule counts in them */
	attr.counters = id;
	attr.flags = RNIC_FLOW_DROP;
	flow = add_rule(&g.b, &attr);
	send_frame(&b, 0);
	send_frame(&b, 0);
	assert_int_equal(rnic_flow_counters_read(g.fx.r, 2, id, &count), 0);
	assert_int_equal(count.packets, 2);
	assert_int_equal(count.bytes, 2 * b.len);
	assert_int_equal(rnic_flow_counters_destroy(g.fx.r, 2, id), EBUSY);
	assert_int_equal(rnic_flow_counters_read(g.fx.r, 1, id, &count),
			 EINVAL);
	del_rule(&g.b, flow);
	assert_int_equal(rnic_flow_counters_destroy(g.fx.r, 2, id), 0);
	assert_int_equal(rnic_flow_create(g.fx.r, 2, &attr, &flow), EINVAL);
}

TEST(a_rule_of_others_or_for_others_is_einval)
{
	struct rnic_flow_attr attr = rule(&g.b);
	struct fx_end rc, ud;
	struct fx_mr mr;
	uint32_t flow, n;

	assert_int_equal(rnic_flow_create(g.fx.r, 1, &attr, &flow), EINVAL);
	attr.port = 0;
	assert_int_equal(rnic_flow_create(g.fx.r, 2, &attr, &flow), EINVAL);
	attr.port = RNIC_MAX_PORTS + 1;
	assert_int_equal(rnic_flow_create(g.fx.r, 2, &attr, &flow), EINVAL);
	attr.port = 1;
	attr.type = RNIC_FLOW_SNIFFER + 1;
	assert_int_equal(rnic_flow_create(g.fx.r, 2, &attr, &flow), EINVAL);
	open_end(&rc, &mr, 4, 1, RNIC_QPT_RC);
	attr = rule(&rc);
	assert_int_equal(rnic_flow_create(g.fx.r, 4, &attr, &flow), EINVAL);
	open_end(&ud, &mr, 5, 1, RNIC_QPT_UD);
	attr = rule(&ud);
	assert_int_equal(rnic_flow_create(g.fx.r, 5, &attr, &flow), EOPNOTSUPP);

	attr = rule(&g.b);
	flow = add_rule(&g.b, &attr);
	assert_int_equal(rnic_qp_destroy(g.fx.r, 2, g.b.qpn, &n), EBUSY);
	assert_int_equal(rnic_flow_destroy(g.fx.r, 1, flow), EINVAL);
	del_rule(&g.b, flow);
	assert_int_equal(rnic_flow_destroy(g.fx.r, 2, flow), EINVAL);
}

TEST(rules_of_a_dead_process_vanish)
{
	struct rnic_flow_attr attr = rule(&g.b), c_attr = rule(&g.c);
	struct bytes b = udp_frame();

	add_rule(&g.b, &attr);
	c_attr.priority = 1;
	add_rule(&g.c, &c_attr);
	assert_false(gets(&g.c, &g.cm, &b));
	assert_true(rnic_ctx_reap(g.fx.r, 2));
	assert_true(gets(&g.c, &g.cm, &b));
}

TEST(all_rules_that_there_may_be_and_not_one_more)
{
	struct rnic_flow_attr attr = rule(&g.b);
	uint32_t flow, i;

	for (i = 1; i < RNIC_MAX_FLOW; i++)
		add_rule(&g.b, &attr);
	assert_int_equal(rnic_flow_create(g.fx.r, 2, &attr, &flow), ENOMEM);
	assert_true(rnic_ctx_reap(g.fx.r, 2));
	assert_int_equal(g.fx.r->sh->flows.used, 0);
	assert_int_equal(g.fx.r->sh->flows.high, 0);
}

/* ---- sending and receiving ------------------------------------------- */

TEST(a_frame_is_neither_shorter_than_its_header_nor_too_long)
{
	static const uint32_t bad[] = {0, RNIC_MIN_FRAME - 1,
				       RNIC_MAX_FRAME + 1};
	struct rnic_flow_attr attr = rule(&g.b);
	struct fx_wr wr = {
		.opcode = SF_OP_SEND,
		.flags = SF_WQE_SIGNALED,
		.n_sge = 1,
		.sge = {fx_sge(&g.am, 0, RNIC_MAX_FRAME)},
	};
	uint32_t i;

	add_rule(&g.b, &attr);
	fx_recv_mr(&g.b, 5, &g.bm, 0, RNIC_MAX_FRAME);
	expect_ok(&g.a.scq, SF_OP_SEND, fx_send(&g.a, &wr));
	assert_int_equal(expect_ok(&g.b.rcq, SF_CQE_RECV, 5).byte_len,
			 RNIC_MAX_FRAME);
	for (i = 0; i < 3; i++) {
		wr.sge[0].length = bad[i];
		expect_cqe(&g.a.scq, SF_OP_SEND, SF_ST_LOC_LEN_ERR,
			   SF_SYN_LENGTH, fx_send(&g.a, &wr));
		/* Its send queue alone is in error, and is mended. */
		assert_int_equal(fx_state(&g.a), RNIC_SQE);
		assert_int_equal(fx_modify(&g.a, RNIC_RTS), 0);
	}
}

TEST(other_operations_are_errors)
{
	struct fx_wr wr = {
		.opcode = SF_OP_SEND_IMM,
		.flags = SF_WQE_SIGNALED,
		.n_sge = 1,
		.sge = {fx_sge(&g.am, 0, 64)},
	};

	expect_cqe(&g.a.scq, SF_OP_SEND_IMM, SF_ST_LOC_QP_OP_ERR, SF_SYN_OPCODE,
		   fx_send(&g.a, &wr));
	assert_int_equal(fx_modify(&g.a, RNIC_RTS), 0);
	wr.opcode = SF_OP_WRITE;
	expect_cqe(&g.a.scq, SF_OP_WRITE, SF_ST_LOC_QP_OP_ERR, SF_SYN_OPCODE,
		   fx_send(&g.a, &wr));
}

TEST(checksums_are_for_raw_packets_only)
{
	struct fx_opts o = fx_defaults;
	struct fx_end x, y;
	struct fx_mr mr;
	struct fx_wr wr = {.opcode = SF_OP_SEND,
			   .flags = SF_WQE_SIGNALED | SF_WQE_CHECKSUMS,
			   .n_sge = 1};

	fx_end_new(&x, &g.fx, g.fx.r, 8, 0, &o);
	fx_end_new(&y, &g.fx, g.fx.r, 9, 1, &o);
	fx_connect(&x, &y, RNIC_RTS, &o, 0, 0);
	mr = fx_mr(&x, 4096, FX_ALL_ACCESS);
	wr.sge[0] = fx_sge(&mr, 0, 64);
	expect_cqe(&x.scq, SF_OP_SEND, SF_ST_LOC_QP_OP_ERR, SF_SYN_OPCODE,
		   fx_send(&x, &wr));
}

TEST(memory_that_is_gone_is_the_sender_s_error)
{
	struct rnic_flow_attr attr = rule(&g.b);
	struct fx_mr far = fx_mr_far(&g.a, 0, 4096, FX_ALL_ACCESS);
	struct fx_wr wr = {
		.opcode = SF_OP_SEND,
		.flags = SF_WQE_SIGNALED,
		.n_sge = 1,
		.sge = {fx_sge(&far, 0, 64)},
	};

	add_rule(&g.b, &attr);
	fx_recv_mr(&g.b, 5, &g.bm, 0, 256);
	g.fx.bad_va = FX_FAR_BASE;
	g.fx.bad_len = 4096;
	expect_cqe(&g.a.scq, SF_OP_SEND, SF_ST_LOC_PROT_ERR, SF_SYN_FAULT,
		   fx_send(&g.a, &wr));
	expect_no_cqe(&g.b.rcq);
}

TEST(a_receive_that_is_too_small_is_an_error)
{
	struct rnic_flow_attr attr = rule(&g.b);
	struct bytes b = udp_frame();

	add_rule(&g.b, &attr);
	fx_recv_mr(&g.b, 5, &g.bm, 0, b.len - 1);
	send_frame(&b, 0);
	expect_cqe(&g.b.rcq, SF_CQE_RECV, SF_ST_LOC_LEN_ERR, SF_SYN_LENGTH, 5);
	assert_int_equal(fx_state(&g.b), RNIC_ERR);
}

TEST(no_datagram_reaches_a_raw_packet_queue_pair)
{
	struct fx_opts o = fx_defaults;
	struct fx_end ud;
	struct fx_mr mr;
	struct fx_wr wr;

	o.type = RNIC_QPT_UD;
	fx_end_new(&ud, &g.fx, g.fx.r, 6, 0, &o);
	fx_connect(&ud, &ud, RNIC_RTS, &o, 0, 0);
	mr = fx_mr(&ud, 4096, FX_ALL_ACCESS);
	wr = (struct fx_wr){
		.opcode = SF_OP_SEND,
		.flags = SF_WQE_SIGNALED,
		.remote_addr = fx_ah(&ud, &g.b, true) | (uint64_t)g.b.qpn << 32,
		.n_sge = 1,
		.sge = {fx_sge(&mr, 0, 64)},
	};
	fx_recv_mr(&g.b, 5, &g.bm, 0, 256);
	expect_ok(&ud.scq, SF_OP_SEND, fx_send(&ud, &wr));
	expect_no_cqe(&g.b.rcq);
}

/* ---- receive-side scaling -------------------------------------------- */

struct scaled {
	struct fx_end wq[4];
	struct fx_mr mr[4];
	uint32_t table, qpn;
};

static int hash_create(uint32_t pdn, uint32_t table, uint32_t fields,
		       uint32_t *qpn)
{
	struct rnic_qp_init init = {
		.type = RNIC_QPT_HASH,
		.dev = 1,
		.pdn = pdn,
		.sq_log_stride = SF_SLOT_LOG_MIN,
		.rq_log_stride = SF_RQ_LOG_MIN,
		.hash = {.fields = fields, .table = table},
	};
	struct rnic_qp_mem mem;

	memcpy(init.hash.key, microsoft, sizeof(microsoft));
	return rnic_qp_create(g.fx.r, 7, &init, qpn, &mem);
}

static void open_scaled(struct scaled *s)
{
	struct rnic_wq_table_attr attr = {.log_size = 2};
	uint32_t i;

	for (i = 0; i < 4; i++) {
		open_end(&s->wq[i], &s->mr[i], 7, 1, RNIC_QPT_WQ);
		assert_int_equal(rnic_wq_modify(g.fx.r, 7, s->wq[i].qpn, ~0u,
						RNIC_WQ_READY),
				 0);
		attr.wqn[i] = s->wq[i].qpn;
	}
	assert_int_equal(rnic_wq_table_create(g.fx.r, 7, &attr, &s->table), 0);
	assert_int_equal(hash_create(s->wq[0].pdn, s->table,
				     RNIC_HASH_SRC_IPV4 | RNIC_HASH_DST_IPV4,
				     &s->qpn),
			 0);
}

TEST(the_hash_chooses_the_work_queue)
{
	struct rnic_flow_attr attr = {.port = 1, .tag = 9};
	struct bytes b = udp_frame();
	struct scaled s;
	uint32_t i, n, taken = 0, flow;

	open_scaled(&s);
	attr.qpn = s.qpn;
	assert_int_equal(rnic_flow_create(g.fx.r, 7, &attr, &flow), 0);
	for (i = 0; i < 64; i++) {
		uint32_t hash, want;
		struct sf_cqe cqe;

		b.at[14 + 15] = i; /* of the source's address */
		hash = rnic_toeplitz(microsoft, b.at + 14 + 12, 8);
		want = hash & 3;
		for (n = 0; n < 4; n++)
			fx_recv_mr(&s.wq[n], i, &s.mr[n], 0, 256);
		send_frame(&b, 0);
		for (n = 0; n < 4; n++) {
			assert_int_equal(fx_poll(&s.wq[n].rcq, &cqe),
					 n == want);
			if (n == want) {
				assert_int_equal(cqe.qpn, s.wq[n].qpn);
				assert_int_equal(cqe.imm, 9);
				assert_memory_equal(s.mr[n].ptr, b.at, b.len);
			}
			/* All have one posted again. */
			s.wq[n].rq_next -= n != want;
		}
		taken |= 1u << want;
	}
	assert_int_equal(taken, 0xf);
}

TEST(a_work_queue_receives_when_it_is_ready)
{
	struct rnic_flow_attr attr = {.port = 1};
	struct bytes b = udp_frame();
	struct scaled s;
	struct fx_end *w;
	uint32_t i, flow;

	open_scaled(&s);
	for (i = 0; i < 4; i++)
		assert_int_equal(rnic_wq_modify(g.fx.r, 7, s.wq[i].qpn,
						RNIC_WQ_READY, RNIC_WQ_RESET),
				 0);
	attr.qpn = s.qpn;
	assert_int_equal(rnic_flow_create(g.fx.r, 7, &attr, &flow), 0);
	w = &s.wq[rnic_toeplitz(microsoft, b.at + 14 + 12, 8) & 3];
	fx_recv_mr(w, 1, &s.mr[w - s.wq], 0, 256);
	send_frame(&b, 0);
	expect_no_cqe(&w->rcq);
	/* It is not in the state that its owner thinks. */
	assert_int_equal(rnic_wq_modify(g.fx.r, 7, w->qpn, RNIC_WQ_ERR,
					RNIC_WQ_READY),
			 EINVAL);
	assert_int_equal(rnic_wq_modify(g.fx.r, 7, w->qpn, RNIC_WQ_RESET,
					RNIC_WQ_READY),
			 0);
	send_frame(&b, 0);
	expect_ok(&w->rcq, SF_CQE_RECV, 1);
	fx_recv_mr(w, 2, &s.mr[w - s.wq], 0, 256);
	assert_int_equal(rnic_wq_modify(g.fx.r, 7, w->qpn, RNIC_WQ_READY,
					RNIC_WQ_ERR),
			 0);
	expect_cqe(&w->rcq, SF_CQE_RECV, SF_ST_WR_FLUSH_ERR, SF_SYN_QP_STATE,
		   2);
	send_frame(&b, 0);
	expect_no_cqe(&w->rcq);
}

TEST(tables_hold_their_queues_and_hashes_their_tables)
{
	struct rnic_qp_attr attr = {.state = RNIC_INIT, .port_num = 1};
	struct rnic_wq_table_attr table = {.log_size = 0};
	struct scaled s;
	uint32_t n, other;

	open_scaled(&s);
	assert_int_equal(rnic_qp_destroy(g.fx.r, 7, s.wq[0].qpn, &n), EBUSY);
	assert_int_equal(rnic_wq_table_destroy(g.fx.r, 7, s.table), EBUSY);
	assert_int_equal(rnic_wq_table_destroy(g.fx.r, 1, s.table), EINVAL);
	/* Neither is a queue pair that one modifies. */
	assert_int_equal(rnic_qp_modify(g.fx.r, 7, s.qpn, &attr,
					RNIC_QP_STATE | RNIC_QP_PORT),
			 EOPNOTSUPP);
	assert_int_equal(rnic_qp_modify(g.fx.r, 7, s.wq[0].qpn, &attr,
					RNIC_QP_STATE),
			 EINVAL);
	assert_int_equal(rnic_wq_modify(g.fx.r, 7, s.qpn, ~0u, RNIC_WQ_READY),
			 EINVAL);

	table.wqn[0] = g.b.qpn; /* a queue pair, and another's */
	assert_int_equal(rnic_wq_table_create(g.fx.r, 7, &table, &other),
			 EINVAL);
	table.log_size = RNIC_MAX_LOG_WQ_TABLE + 1;
	assert_int_equal(rnic_wq_table_create(g.fx.r, 7, &table, &other),
			 EINVAL);
	assert_int_equal(hash_create(s.wq[0].pdn, s.table + 1, 0, &other),
			 EINVAL);
	assert_int_equal(hash_create(s.wq[0].pdn, s.table, 1u << 20, &other),
			 EINVAL);

	assert_int_equal(rnic_qp_destroy(g.fx.r, 7, s.qpn, &n), 0);
	assert_int_equal(rnic_wq_table_destroy(g.fx.r, 7, s.table), 0);
	assert_int_equal(rnic_qp_destroy(g.fx.r, 7, s.wq[0].qpn, &n), 0);
}

TEST(a_work_queue_s_fatal_event_is_its_own)
{
	struct rnic_flow_attr attr = {.port = 1};
	struct bytes b = udp_frame();
	struct scaled s;
	struct sf_doorbell *db;
	struct fx_end *w;
	uint32_t flow;

	open_scaled(&s);
	attr.qpn = s.qpn;
	assert_int_equal(rnic_flow_create(g.fx.r, 7, &attr, &flow), 0);
	w = &s.wq[rnic_toeplitz(microsoft, b.at + 14 + 12, 8) & 3];
	db = rnic_at(w->r, w->mem.doorbells);
	db[1].value = 1 << 20; /* more than the ring holds */
	send_frame(&b, 0);
	expect_event(&g.fx, RNIC_EVENT_WQ_FATAL, 7, w->init.user_handle);
}

TEST(a_context_with_all_of_it_is_reaped)
{
	struct rnic_flow_attr attr = {.port = 1};
	struct scaled s;

	open_scaled(&s);
	attr.qpn = s.qpn;
	assert_int_equal(
		rnic_flow_counters_create(g.fx.r, 7, 1, &attr.counters), 0);
	assert_int_equal(rnic_flow_create(g.fx.r, 7, &attr, &s.qpn), 0);
	assert_true(rnic_ctx_reap(g.fx.r, 7));
	assert_int_equal(g.fx.r->sh->wq_tables.used, 0);
	assert_int_equal(g.fx.r->sh->flow_counters.used, 0);
}

TEST(infiniband_has_no_raw_packets)
{
	static const uint32_t types[] = {RNIC_QPT_RAW_PACKET, RNIC_QPT_WQ,
					 RNIC_QPT_HASH};
	struct rnic_qp_init init = {
		.sq_log_stride = SF_SLOT_LOG_MIN,
		.rq_log_stride = SF_RQ_LOG_MIN,
	};
	struct rnic_qp_mem mem;
	struct fx fx;
	uint32_t qpn, i;

	memset(&fx, 0, sizeof(fx));
	fx_open(&fx, RNIC_INFINIBAND);
	for (i = 0; i < 3; i++) {
		init.type = types[i];
		assert_int_equal(rnic_qp_create(fx.r, 1, &init, &qpn, &mem),
				 EOPNOTSUPP);
	}
	fx_close(&fx);
}

#define UNIT(name) cmocka_unit_test(name)
#define RIG(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(headers_are_where_the_specifications_say),
		UNIT(ipv6_is_read_through_its_extensions),
		UNIT(a_later_fragment_has_no_ports),
		UNIT(tunnels_have_a_second_set_of_headers),
		UNIT(what_is_cut_off_is_not_there),
		UNIT(checksums_that_were_written_are_right_and_one_bit_tells),
		UNIT(the_hash_has_the_known_values),
		UNIT(the_hash_of_ipv6_has_the_known_values),
		UNIT(infiniband_has_no_raw_packets),
		RIG(a_frame_that_no_rule_wants_is_dropped),
		RIG(a_rule_brings_the_frame_with_its_tag),
		RIG(each_field_of_a_rule_decides),
		RIG(a_rule_for_a_layer_wants_that_layer),
		RIG(the_lowest_priority_number_wins_and_equals_share),
		RIG(defaults_come_last_and_a_sniffer_sees_all),
		RIG(two_rules_for_one_queue_pair_bring_one_copy),
		RIG(counters_count_frames_and_bytes_that_match),
		RIG(a_rule_of_others_or_for_others_is_einval),
		RIG(rules_of_a_dead_process_vanish),
		RIG(all_rules_that_there_may_be_and_not_one_more),
		RIG(a_frame_is_neither_shorter_than_its_header_nor_too_long),
		RIG(other_operations_are_errors),
		RIG(checksums_are_for_raw_packets_only),
		RIG(memory_that_is_gone_is_the_sender_s_error),
		RIG(a_receive_that_is_too_small_is_an_error),
		RIG(no_datagram_reaches_a_raw_packet_queue_pair),
		RIG(the_hash_chooses_the_work_queue),
		RIG(a_work_queue_receives_when_it_is_ready),
		RIG(tables_hold_their_queues_and_hashes_their_tables),
		RIG(a_work_queue_s_fatal_event_is_its_own),
		RIG(a_context_with_all_of_it_is_reaped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Packs and unpacks messages by tables that read like the specification's. */
#include <string.h>
#include "rnic/cm_msg.h"

/* The common header of a MAD (IBTA vol. 1, 13.4.3). */
#define MAD_BASE_VERSION 1
#define MAD_CLASS_CM 7
#define MAD_CM_VERSION 2
#define MAD_SEND 3
#define MAD_HEADER 24

/* @width bits from bit @bit of byte @byte on, the most significant first. */
struct field {
	uint16_t byte;
	uint8_t bit;
	uint8_t width;
	uint16_t offset; /* in struct rnic_cm_msg */
	uint16_t size;	 /* there: 4, 8, or as many bytes as are copied */
};

#define BITS(byte, bit, width, member)                                  \
	{                                                               \
		byte, bit, width, offsetof(struct rnic_cm_msg, member), \
			sizeof(((struct rnic_cm_msg *)0)->member)       \
	}
#define NUMBER(byte, width, member) BITS(byte, 0, width, member)
/* Bytes as they are. */
#define BYTES(byte, member) BITS(byte, 0, 0, member)

static const struct field req_fields[] = {
	NUMBER(0, 32, local_id),
	NUMBER(5, 24, req.vendor_id),
	NUMBER(8, 64, req.service_id),
	NUMBER(16, 64, req.ca_guid),
	NUMBER(28, 32, req.qkey),
	NUMBER(32, 24, req.qpn),
	NUMBER(35, 8, req.responder_resources),
	NUMBER(39, 8, req.initiator_depth),
	BITS(43, 0, 5, req.remote_timeout),
	BITS(43, 5, 2, req.transport),
	BITS(43, 7, 1, req.flow_control),
	NUMBER(44, 24, req.psn),
	BITS(47, 0, 5, req.local_timeout),
	BITS(47, 5, 3, req.retry_count),
	NUMBER(48, 16, req.pkey),
	BITS(50, 0, 4, req.mtu),
	BITS(50, 5, 3, req.rnr_retry_count),
	BITS(51, 0, 4, req.max_cm_retries),
	BITS(51, 4, 1, req.srq),
	BITS(51, 5, 3, req.extended_transport),
	NUMBER(52, 16, req.path.local_lid),
	NUMBER(54, 16, req.path.remote_lid),
	BYTES(56, req.path.local_gid),
	BYTES(72, req.path.remote_gid),
	NUMBER(88, 20, req.path.flow_label),
	BITS(91, 2, 6, req.path.rate),
	NUMBER(92, 8, req.path.traffic_class),
	NUMBER(93, 8, req.path.hop_limit),
	BITS(94, 0, 4, req.path.sl),
	BITS(94, 4, 1, req.path.subnet_local),
	BITS(95, 0, 5, req.path.ack_timeout),
	/* 96 to 139: the alternate path */
};

static const struct field mra_fields[] = {
	NUMBER(0, 32, local_id),
	NUMBER(4, 32, remote_id),
	BITS(8, 0, 2, mra.about),
	BITS(9, 0, 5, mra.service_timeout),
};

static const struct field rej_fields[] = {
	NUMBER(0, 32, local_id),    NUMBER(4, 32, remote_id),
	BITS(8, 0, 2, rej.about),   BITS(9, 0, 7, rej.info_len),
	NUMBER(10, 16, rej.reason), BYTES(12, rej.info),
};

static const struct field rep_fields[] = {
	NUMBER(0, 32, local_id),
	NUMBER(4, 32, remote_id),
	NUMBER(8, 32, rep.qkey),
	NUMBER(12, 24, rep.qpn),
	NUMBER(15, 8, rep.vendor_h),
	NUMBER(19, 8, rep.vendor_m),
	NUMBER(20, 24, rep.psn),
	NUMBER(23, 8, rep.vendor_l),
	NUMBER(24, 8, rep.responder_resources),
	NUMBER(25, 8, rep.initiator_depth),
	BITS(26, 0, 5, rep.target_ack_delay),
	BITS(26, 5, 2, rep.failover_accepted),
	BITS(26, 7, 1, rep.flow_control),
	BITS(27, 0, 3, rep.rnr_retry_count),
	BITS(27, 3, 1, rep.srq),
	NUMBER(28, 64, rep.ca_guid),
};

static const struct field rtu_fields[] = {
	NUMBER(0, 32, local_id),
	NUMBER(4, 32, remote_id),
};

static const struct field dreq_fields[] = {
	NUMBER(0, 32, local_id),
	NUMBER(4, 32, remote_id),
	NUMBER(8, 24, dreq.remote_qpn),
};

static const struct field sidr_req_fields[] = {
	NUMBER(0, 32, local_id),
	NUMBER(4, 16, sidr_req.pkey),
	NUMBER(8, 64, sidr_req.service_id),
};

/* The request id is the receiver's own: its number of the conversation. */
static const struct field sidr_rep_fields[] = {
	NUMBER(0, 32, remote_id),
	NUMBER(4, 8, sidr_rep.status),
	NUMBER(5, 8, sidr_rep.info_len),
	NUMBER(8, 24, sidr_rep.qpn),
	NUMBER(12, 64, sidr_rep.service_id),
	NUMBER(20, 32, sidr_rep.qkey),
	BYTES(24, sidr_rep.info),
};

struct layout {
	const struct field *field;
	size_t fields;
	uint16_t private_at;
	uint16_t private_len;
};

#define LAYOUT(table, at, len)                                      \
	{                                                           \
		table, sizeof(table) / sizeof((table)[0]), at, len, \
	}
#define ATTR_FIRST RNIC_CM_REQ

static const struct layout layouts[] = {
	[RNIC_CM_REQ - ATTR_FIRST] =
		LAYOUT(req_fields, 140, RNIC_CM_REQ_PRIVATE),
	[RNIC_CM_MRA - ATTR_FIRST] =
		LAYOUT(mra_fields, 10, RNIC_CM_MRA_PRIVATE),
	[RNIC_CM_REJ - ATTR_FIRST] =
		LAYOUT(rej_fields, 84, RNIC_CM_REJ_PRIVATE),
	[RNIC_CM_REP - ATTR_FIRST] =
		LAYOUT(rep_fields, 36, RNIC_CM_REP_PRIVATE),
	[RNIC_CM_RTU - ATTR_FIRST] = LAYOUT(rtu_fields, 8, RNIC_CM_RTU_PRIVATE),
	[RNIC_CM_DREQ - ATTR_FIRST] =
		LAYOUT(dreq_fields, 12, RNIC_CM_DREQ_PRIVATE),
	[RNIC_CM_DREP - ATTR_FIRST] =
		LAYOUT(rtu_fields, 8, RNIC_CM_DREP_PRIVATE),
	[RNIC_CM_SIDR_REQ - ATTR_FIRST] =
		LAYOUT(sidr_req_fields, 16, RNIC_CM_SIDR_REQ_PRIVATE),
	[RNIC_CM_SIDR_REP - ATTR_FIRST] =
		LAYOUT(sidr_rep_fields, 96, RNIC_CM_SIDR_REP_PRIVATE),
};

static const struct layout *find_layout(uint32_t attr)
{
	if (attr < ATTR_FIRST ||
	    attr - ATTR_FIRST >= sizeof(layouts) / sizeof(layouts[0]))
		return NULL;
	return &layouts[attr - ATTR_FIRST];
}

static void put_bits(uint8_t *at, uint32_t bit, uint32_t width, uint64_t value)
{
	uint32_t i;

	for (i = 0; i < width; i++, bit++)
		if (value >> (width - 1 - i) & 1)
			at[bit / 8] |= 0x80u >> bit % 8;
}

static uint64_t get_bits(const uint8_t *at, uint32_t bit, uint32_t width)
{
	uint64_t value = 0;
	uint32_t i;

	for (i = 0; i < width; i++, bit++)
		value = value << 1 | (at[bit / 8] >> (7 - bit % 8) & 1);
	return value;
}

static void put_field(const struct field *f, const struct rnic_cm_msg *msg,
		      uint8_t *data)
{
	const uint8_t *from = (const uint8_t *)msg + f->offset;
	uint32_t small;
	uint64_t value;

	if (!f->width) {
		memcpy(data + f->byte, from, f->size);
		return;
	}
	if (f->size == sizeof(small)) {
		memcpy(&small, from, sizeof(small));
		value = small;
	} else {
		memcpy(&value, from, sizeof(value));
	}
	put_bits(data + f->byte, f->bit, f->width, value);
}

static void get_field(const struct field *f, struct rnic_cm_msg *msg,
		      const uint8_t *data)
{
	uint8_t *to = (uint8_t *)msg + f->offset;
	uint32_t small;
	uint64_t value;

	if (!f->width) {
		memcpy(to, data + f->byte, f->size);
		return;
	}
	value = get_bits(data + f->byte, f->bit, f->width);
	small = (uint32_t)value;
	if (f->size == sizeof(small))
		memcpy(to, &small, sizeof(small));
	else
		memcpy(to, &value, sizeof(value));
}

uint32_t rnic_cm_private_len(uint32_t attr)
{
	const struct layout *l = find_layout(attr);

	return l ? l->private_len : 0;
}

bool rnic_cm_pack(const struct rnic_cm_msg *msg, uint8_t mad[RNIC_MAD_LEN])
{
	const struct layout *l = find_layout(msg->attr);
	size_t i;

	if (!l)
		return false;
	memset(mad, 0, RNIC_MAD_LEN);
	mad[0] = MAD_BASE_VERSION;
	mad[1] = MAD_CLASS_CM;
	mad[2] = MAD_CM_VERSION;
	mad[3] = MAD_SEND;
	put_bits(mad + 8, 0, 64, msg->tid);
	put_bits(mad + 16, 0, 16, msg->attr);
	put_bits(mad + 20, 0, 32, msg->modifier);
	for (i = 0; i < l->fields; i++)
		put_field(&l->field[i], msg, mad + MAD_HEADER);
	memcpy(mad + MAD_HEADER + l->private_at, msg->private_data,
	       l->private_len);
	return true;
}

bool rnic_cm_unpack(struct rnic_cm_msg *msg, const uint8_t *mad, size_t len)
{
	const struct layout *l;
	size_t i;

	memset(msg, 0, sizeof(*msg));
	if (len != RNIC_MAD_LEN || mad[0] != MAD_BASE_VERSION ||
	    mad[1] != MAD_CLASS_CM || mad[2] != MAD_CM_VERSION ||
	    mad[3] != MAD_SEND)
		return false;
	msg->tid = get_bits(mad + 8, 0, 64);
	msg->attr = (uint32_t)get_bits(mad + 16, 0, 16);
	msg->modifier = (uint32_t)get_bits(mad + 20, 0, 32);
	l = find_layout(msg->attr);
	if (!l)
		return false;
	for (i = 0; i < l->fields; i++)
		get_field(&l->field[i], msg, mad + MAD_HEADER);
	memcpy(msg->private_data, mad + MAD_HEADER + l->private_at,
	       l->private_len);
	return true;
}

/* ---- RDMA IP CM service --------------------------------------------- */

/* Addresses are 16 bytes, IPv4 in the last four. */
static void put_ip(uint8_t *at, const uint8_t *ip, uint32_t version)
{
	if (version == 4)
		memcpy(at + 12, ip, 4);
	else
		memcpy(at, ip, 16);
}

static void get_ip(uint8_t *ip, const uint8_t *at, uint32_t version)
{
	if (version == 4)
		memcpy(ip, at + 12, 4);
	else
		memcpy(ip, at, 16);
}

void rnic_cm_ip_pack(const struct rnic_cm_ip *ip,
		     uint8_t header[RNIC_CM_IP_HEADER])
{
	memset(header, 0, RNIC_CM_IP_HEADER);
	header[1] = (uint8_t)(ip->version << 4);
	put_bits(header + 2, 0, 16, ip->src_port);
	put_ip(header + 4, ip->src, ip->version);
	put_ip(header + 20, ip->dst, ip->version);
}

bool rnic_cm_ip_unpack(struct rnic_cm_ip *ip,
		       const uint8_t header[RNIC_CM_IP_HEADER])
{
	memset(ip, 0, sizeof(*ip));
	ip->version = header[1] >> 4;
	/* Major version 0; minor ones are compatible. */
	if (header[0] >> 4 || (ip->version != 4 && ip->version != 6))
		return false;
	ip->src_port = (uint32_t)get_bits(header + 2, 0, 16);
	get_ip(ip->src, header + 4, ip->version);
	get_ip(ip->dst, header + 20, ip->version);
	return true;
}

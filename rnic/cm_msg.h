/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages of communication management as they travel: MADs of class 7 (IBTA
 * vol. 1, 12.6 to 12.11), and the header that the RDMA IP CM service puts
 * before a REQ's private data (annex A11).
 *
 * Numbers are in host order here, addresses (GIDs, IPs) in network order.
 */
#ifndef RNIC_CM_MSG_H
#define RNIC_CM_MSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RNIC_MAD_LEN 256

/* Attribute ids of the messages. */
enum rnic_cm_attr {
	RNIC_CM_REQ = 0x10,
	RNIC_CM_MRA = 0x11,
	RNIC_CM_REJ = 0x12,
	RNIC_CM_REP = 0x13,
	RNIC_CM_RTU = 0x14,
	RNIC_CM_DREQ = 0x15,
	RNIC_CM_DREP = 0x16,
	RNIC_CM_SIDR_REQ = 0x17,
	RNIC_CM_SIDR_REP = 0x18,
};

/* Bytes of private data in each. */
#define RNIC_CM_REQ_PRIVATE 92
#define RNIC_CM_MRA_PRIVATE 222
#define RNIC_CM_REJ_PRIVATE 148
#define RNIC_CM_REP_PRIVATE 196
#define RNIC_CM_RTU_PRIVATE 224
#define RNIC_CM_DREQ_PRIVATE 220
#define RNIC_CM_DREP_PRIVATE 224
#define RNIC_CM_SIDR_REQ_PRIVATE 216
#define RNIC_CM_SIDR_REP_PRIVATE 136
#define RNIC_CM_PRIVATE_MAX 224
#define RNIC_CM_ARI 72

/* Which message an MRA or REJ is about. */
enum rnic_cm_about {
	RNIC_CM_ABOUT_REQ = 0,
	RNIC_CM_ABOUT_REP = 1,
	RNIC_CM_ABOUT_OTHER = 2,
};

/* Table 110 of the specification, those that are used. */
enum rnic_cm_reason {
	RNIC_CM_NO_RESOURCES = 3,
	RNIC_CM_TIMEOUT = 4,
	RNIC_CM_INVALID_COMM_ID = 6,
	RNIC_CM_INVALID_SERVICE_ID = 8,
	RNIC_CM_INVALID_TRANSPORT = 9,
	RNIC_CM_STALE_CONN = 10,
	RNIC_CM_CONSUMER = 28,
	RNIC_CM_VENDOR_OPTION = 35,
};

enum rnic_cm_sidr_status {
	RNIC_CM_SIDR_OK = 0,
	RNIC_CM_SIDR_UNSUPPORTED = 1,
	RNIC_CM_SIDR_REJECT = 2,
};

/* Transport service types of a REQ; XRC is RESERVED plus extended type 1. */
enum rnic_cm_transport {
	RNIC_CM_RC = 0,
	RNIC_CM_UC = 1,
	RNIC_CM_EXTENDED = 3,
};

/* A path as a REQ describes it: "local" is the sender of the message. */
struct rnic_cm_req_path {
	uint8_t local_gid[16];
	uint8_t remote_gid[16];
	uint32_t local_lid, remote_lid;
	uint32_t flow_label;
	uint32_t rate;
	uint32_t traffic_class;
	uint32_t hop_limit;
	uint32_t sl;
	uint32_t subnet_local;
	uint32_t ack_timeout;
};

struct rnic_cm_msg {
	uint64_t tid;
	uint32_t attr;	    /* enum rnic_cm_attr */
	uint32_t modifier;  /* ECE options, in REQ and REP */
	uint32_t local_id;  /* of the sender; SIDR: the request id */
	uint32_t remote_id; /* of the receiver */
	union {
		struct {
			uint32_t vendor_id; /* ECE */
			uint64_t service_id;
			uint64_t ca_guid;
			uint32_t qkey;
			uint32_t qpn;
			uint32_t responder_resources;
			uint32_t initiator_depth;
			uint32_t remote_timeout; /* 4.096 us << this */
			uint32_t transport;
			uint32_t flow_control;
			uint32_t psn; /* at which the receiver starts */
			uint32_t local_timeout;
			uint32_t retry_count;
			uint32_t pkey;
			uint32_t mtu;
			uint32_t rnr_retry_count;
			uint32_t max_cm_retries;
			uint32_t srq;
			uint32_t extended_transport;
			struct rnic_cm_req_path path;
		} req;
		struct {
			uint32_t about; /* enum rnic_cm_about */
			uint32_t service_timeout;
		} mra;
		struct {
			uint32_t about;
			uint32_t info_len; /* valid bytes of info */
			uint32_t reason;
			uint8_t info[RNIC_CM_ARI];
		} rej;
		struct {
			uint32_t vendor_h, vendor_m, vendor_l; /* ECE */
			uint32_t qkey;
			uint32_t qpn;
			uint32_t psn;
			uint32_t responder_resources;
			uint32_t initiator_depth;
			uint32_t target_ack_delay;
			uint32_t failover_accepted;
			uint32_t flow_control;
			uint32_t rnr_retry_count;
			uint32_t srq;
			uint64_t ca_guid;
		} rep;
		struct {
			uint32_t remote_qpn;
		} dreq;
		struct {
			uint32_t pkey;
			uint64_t service_id;
		} sidr_req;
		struct {
			uint32_t status; /* enum rnic_cm_sidr_status */
			uint32_t info_len;
			uint32_t qpn;
			uint64_t service_id;
			uint32_t qkey;
			uint8_t info[RNIC_CM_ARI];
		} sidr_rep;
	};
	uint8_t private_data[RNIC_CM_PRIVATE_MAX];
};

/* Bytes of private data that @attr has room for; 0: no such message. */
uint32_t rnic_cm_private_len(uint32_t attr);
/* Writes all of a MAD; false: no such message. */
bool rnic_cm_pack(const struct rnic_cm_msg *msg, uint8_t mad[RNIC_MAD_LEN]);
/* False: not a message of communication management, or none that we know. */
bool rnic_cm_unpack(struct rnic_cm_msg *msg, const uint8_t *mad, size_t len);

/* ---- RDMA IP CM service (annex A11) --------------------------------- */

#define RNIC_CM_IP_HEADER 36

/* Service ids of a port space: the low 16 bits are the port. */
#define RNIC_CM_SERVICE(ps, port) ((uint64_t)(ps) << 16 | (port))

struct rnic_cm_ip {
	uint32_t version; /* 4 or 6 */
	uint32_t src_port;
	uint8_t src[16], dst[16]; /* IPv4: the first 4 bytes */
};

void rnic_cm_ip_pack(const struct rnic_cm_ip *ip,
		     uint8_t header[RNIC_CM_IP_HEADER]);
bool rnic_cm_ip_unpack(struct rnic_cm_ip *ip,
		       const uint8_t header[RNIC_CM_IP_HEADER]);

#endif

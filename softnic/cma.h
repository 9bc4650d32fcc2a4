/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The rdma_cm ids of all programs: what a kernel would keep behind
 * /dev/infiniband/rdma_cm.  Addresses, ports, listeners, event queues; the
 * connections themselves are rnic/cm.h's.  Run by the daemon, without I/O:
 * time is a parameter, the rest comes through a table of functions.
 *
 * Requests and answers are the structs of rdma_user_cm.h, as softnic/ucma.c
 * has found them in a program's memory.
 */
#ifndef SFNIC_CMA_H
#define SFNIC_CMA_H

#include <netinet/in.h>
#include <rdma/rdma_user_cm.h>
#include "rnic/cm.h"

/* librdmacm keeps ids in a table of so many. */
#define CMA_MAX_ID 65536
#define CMA_MAX_CHANNEL 4096
#define CMA_MAX_PATHS 6 /* in an option */

/* Beside those of rdma_user_cm.h: make the channel readable if it should be. */
#define CMA_SYNC 0x100

/* <infiniband/ib.h> is not everywhere. */
#define CMA_AF_IB 27
struct cma_sockaddr_ib {
	uint16_t sib_family;
	uint16_t sib_pkey;
	uint32_t sib_flowinfo;
	uint8_t sib_addr[16];
	uint64_t sib_sid;
	uint64_t sib_sid_mask;
	uint64_t sib_scope_id;
};

union cma_addr {
	sa_family_t family;
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct cma_sockaddr_ib ib;
};

/*
 * One command.  The forms for IP only (BIND_IP, RESOLVE_IP, JOIN_IP_MCAST) have
 * become the others.
 */
struct cma_req {
	uint32_t channel;
	uint32_t cmd;
	uint32_t from; /* MIGRATE_ID: the channel that it is taken from */
	uint32_t optlen;
	union {
		uint32_t id; /* of GET_EVENT and CMA_SYNC: unused */
		struct rdma_ucm_create_id create_id;
		struct rdma_ucm_destroy_id destroy_id;
		struct rdma_ucm_bind bind;
		struct rdma_ucm_resolve_addr resolve_addr;
		struct rdma_ucm_resolve_route resolve_route;
		struct rdma_ucm_query query;
		struct rdma_ucm_connect connect;
		struct rdma_ucm_listen listen;
		struct rdma_ucm_accept accept;
		struct rdma_ucm_reject reject;
		struct rdma_ucm_disconnect disconnect;
		struct rdma_ucm_init_qp_attr init_qp_attr;
		struct rdma_ucm_notify notify;
		struct rdma_ucm_join_mcast join_mcast;
		struct rdma_ucm_set_option set_option;
		struct rdma_ucm_migrate_id migrate_id;
	};
	union {
		uint8_t opt[1];
		int32_t number;
		struct ib_path_rec_data path[CMA_MAX_PATHS];
	};
};

struct cma_rsp {
	uint32_t
		empty; /* no event waits on the channel (MIGRATE_ID: the old) */
	uint32_t len;  /* valid bytes below */
	union {
		uint8_t bytes[1];
		struct rdma_ucm_create_id_resp create_id;
		struct rdma_ucm_destroy_id_resp destroy_id;
		struct rdma_ucm_query_route_resp query_route;
		struct rdma_ucm_query_addr_resp query_addr;
		struct {
			uint32_t num_paths;
			uint32_t reserved;
			struct ib_path_rec_data data[1];
		} query_path;
		struct ib_uverbs_qp_attr qp_attr;
		struct rdma_ucm_event_resp event;
		struct rdma_ucm_migrate_resp migrate_id;
	};
};

struct cma_ops {
	/* The device that @addr (IPv4, IPv6) belongs to, or -1. */
	int (*device)(void *host, const union cma_addr *addr);
	/* An event waits. */
	void (*ready)(void *host, uint32_t channel);
	bool (*may_bind_low_ports)(void *host);
};

struct cma;

/* @conns: how many connections there can be. */
struct cma *cma_new(const struct rnic *rnic, uint32_t conns, uint64_t seed,
		    const struct cma_ops *ops, void *host);
void cma_free(struct cma *cma);

/* @channel gets a number below CMA_MAX_CHANNEL that is not in use. */
int cma_open(struct cma *cma, uint32_t *channel);
/* With all its ids, as if each had been destroyed. */
void cma_close(struct cma *cma, uint64_t now, uint32_t channel);
/* 0 or a positive errno. */
int cma_command(struct cma *cma, uint64_t now, const struct cma_req *req,
		struct cma_rsp *rsp);
/* When to be called next, or UINT64_MAX. */
uint64_t cma_tick(struct cma *cma, uint64_t now);
/* Makes every channel readable on which events wait. */
void cma_sync(struct cma *cma);

struct cma_objects {
	uint32_t ids, listeners, channels;
};
void cma_count(const struct cma *cma, struct cma_objects *n);

#endif

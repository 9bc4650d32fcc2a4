/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The private interface between libibverbs and its providers, version 34
 * (rdma-core 34 to 56), as far as this provider needs it.  Distributions ship
 * no such header; an rdma-core tree has one of the same name, which takes the
 * place of this one when the provider is built there.
 *
 * Version 34 is not one layout: struct verbs_qp follows struct ibv_qp_ex, which
 * grew at releases 44 and 45.  Here it follows the installed verbs.h, and
 * sf_pabi_matches() of the provider asks the running library.
 */
#ifndef SF_PABI_DRIVER_H
#define SF_PABI_DRIVER_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <sys/types.h>

#include <ccan/container_of.h>
#include <ccan/list.h>
#include <infiniband/kern-abi.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_ioctl_verbs.h>

#define IBVERBS_PABI_VERSION 34

/* ------------------------------------------------------------------------
 * Objects that a provider embeds
 */

struct verbs_xrcd {
	struct ibv_xrcd xrcd;
	uint32_t comp_mask;
	uint32_t handle;
};

enum verbs_qp_mask {
	VERBS_QP_XRCD = 1 << 0,
	VERBS_QP_EX = 1 << 1, /* qp_ex is filled: ibv_qp_to_qp_ex() works */
};

struct verbs_qp {
	union {
		struct ibv_qp qp;
		struct ibv_qp_ex qp_ex;
	};
	uint32_t comp_mask; /* cleared by ibv_cmd_create_qp_ex() */
	struct verbs_xrcd *xrcd;
};

struct verbs_srq {
	struct ibv_srq srq;
	enum ibv_srq_type srq_type;
	struct verbs_xrcd *xrcd;
	struct ibv_cq *cq;
	uint32_t srq_num;
};

struct verbs_cq {
	union {
		struct ibv_cq cq;
		struct ibv_cq_ex cq_ex;
	};
};

enum ibv_mr_type {
	IBV_MR_TYPE_MR,
	IBV_MR_TYPE_NULL_MR,
	IBV_MR_TYPE_IMPORTED_MR,
	IBV_MR_TYPE_DMABUF_MR,
};

/* Every MR must be one: libibverbs reads type and access at dereg. */
struct verbs_mr {
	struct ibv_mr ibv_mr;
	enum ibv_mr_type mr_type;
	int access;
};

struct verbs_counters {
	struct ibv_counters counters;
	uint32_t handle;
};

/* Attributes of an ioctl that a provider adds; this one adds none. */
struct ibv_command_buffer;

/* Of the device's own memory. */
struct verbs_dm {
	struct ibv_dm dm;
	uint32_t handle;
};

enum create_cq_cmd_flags {
	/* The timestamp flag is no reason to insist on the newer command. */
	CREATE_CQ_CMD_FLAGS_TS_IGNORED_EX = 1 << 0,
};

/* ------------------------------------------------------------------------
 * Device and driver
 */

enum {
	VERBS_MATCH_SENTINEL = 0,
	VERBS_MATCH_PCI = 1,
	VERBS_MATCH_MODALIAS = 2,
	VERBS_MATCH_DRIVER_ID = 3,
};

struct verbs_match_ent {
	void *driver_data;
	union {
		const char *modalias; /* fnmatch() pattern */
		uint64_t driver_id;
	} u;
	uint16_t vendor;
	uint16_t device;
	uint8_t kind;
};

#define VERBS_MODALIAS_MATCH(pattern, data)                             \
	{                                                               \
		.driver_data = (void *)(data), .u.modalias = (pattern), \
		.kind = VERBS_MATCH_MODALIAS,                           \
	}

/* What the library found out about a device before it asks providers. */
struct verbs_sysfs_dev {
	struct list_node entry; /* of the library */
	void *provider_data;
	const struct verbs_match_ent *match; /* NULL: not in the match table */
	unsigned int flags;		     /* of the library */
	char sysfs_name[IBV_SYSFS_NAME_MAX];
	dev_t sysfs_cdev;
	char ibdev_name[IBV_SYSFS_NAME_MAX];
	char ibdev_path[IBV_SYSFS_PATH_MAX];
	char modalias[512];
	uint64_t node_guid;
	uint32_t driver_id;
	enum ibv_node_type node_type;
	int ibdev_idx;
	uint32_t num_ports;
	uint32_t abi_ver;
	struct timespec time_created;
};

struct verbs_device;

struct verbs_device_ops {
	const char *name;
	uint32_t match_min_abi_version;
	uint32_t match_max_abi_version;
	const struct verbs_match_ent *match_table;
	const struct verbs_device_ops **static_providers;

	/* If set it alone decides; ->match says what the table said. */
	bool (*match_device)(struct verbs_sysfs_dev *sysfs_dev);
	struct verbs_context *(*alloc_context)(struct ibv_device *device,
					       int cmd_fd, void *private_data);
	struct verbs_context *(*import_context)(struct ibv_device *device,
						int cmd_fd);
	/* Must return zeroed memory. */
	struct verbs_device *(*alloc_device)(struct verbs_sysfs_dev *sysfs_dev);
	/* ->sysfs is gone when it runs. */
	void (*uninit_device)(struct verbs_device *device);
};

struct verbs_device {
	struct ibv_device device;
	const struct verbs_device_ops *ops;
	atomic_int refcount;
	struct list_node entry;
	struct verbs_sysfs_dev *sysfs;
	uint64_t core_support;
};

/* Registered when the plugin is loaded. */
#define PROVIDER_DRIVER(name, ops)                                     \
	static __attribute__((constructor)) void name##_register(void) \
	{                                                              \
		verbs_register_driver_34(&(ops));                      \
	}

void verbs_register_driver_34(const struct verbs_device_ops *ops);

/* ------------------------------------------------------------------------
 * Context.  Slots that a provider leaves NULL answer EOPNOTSUPP.
 */

struct verbs_context_ops {
	int (*advise_mr)(struct ibv_pd *pd, enum ibv_advise_mr_advice advice,
			 uint32_t flags, struct ibv_sge *sg_list,
			 uint32_t num_sges);
	struct ibv_dm *(*alloc_dm)(struct ibv_context *context,
				   struct ibv_alloc_dm_attr *attr);
	struct ibv_mw *(*alloc_mw)(struct ibv_pd *pd, enum ibv_mw_type type);
	struct ibv_mr *(*alloc_null_mr)(struct ibv_pd *pd);
	struct ibv_pd *(*alloc_parent_domain)(
		struct ibv_context *context,
		struct ibv_parent_domain_init_attr *attr);
	struct ibv_pd *(*alloc_pd)(struct ibv_context *context);
	struct ibv_td *(*alloc_td)(struct ibv_context *context,
				   struct ibv_td_init_attr *init_attr);
	void (*async_event)(struct ibv_context *context,
			    struct ibv_async_event *event);
	int (*attach_counters_point_flow)(struct ibv_counters *counters,
					  struct ibv_counter_attach_attr *attr,
					  struct ibv_flow *flow);
	int (*attach_mcast)(struct ibv_qp *qp, const union ibv_gid *gid,
			    uint16_t lid);
	int (*bind_mw)(struct ibv_qp *qp, struct ibv_mw *mw,
		       struct ibv_mw_bind *mw_bind);
	int (*close_xrcd)(struct ibv_xrcd *xrcd);
	void (*cq_event)(struct ibv_cq *cq);
	struct ibv_ah *(*create_ah)(struct ibv_pd *pd,
				    struct ibv_ah_attr *attr);
	struct ibv_counters *(*create_counters)(
		struct ibv_context *context,
		struct ibv_counters_init_attr *init_attr);
	struct ibv_cq *(*create_cq)(struct ibv_context *context, int cqe,
				    struct ibv_comp_channel *channel,
				    int comp_vector);
	struct ibv_cq_ex *(*create_cq_ex)(
		struct ibv_context *context,
		struct ibv_cq_init_attr_ex *init_attr);
	struct ibv_flow *(*create_flow)(struct ibv_qp *qp,
					struct ibv_flow_attr *flow_attr);
	struct ibv_flow_action *(*create_flow_action_esp)(
		struct ibv_context *context,
		struct ibv_flow_action_esp_attr *attr);
	struct ibv_qp *(*create_qp)(struct ibv_pd *pd,
				    struct ibv_qp_init_attr *attr);
	struct ibv_qp *(*create_qp_ex)(
		struct ibv_context *context,
		struct ibv_qp_init_attr_ex *qp_init_attr_ex);
	struct ibv_rwq_ind_table *(*create_rwq_ind_table)(
		struct ibv_context *context,
		struct ibv_rwq_ind_table_init_attr *init_attr);
	struct ibv_srq *(*create_srq)(struct ibv_pd *pd,
				      struct ibv_srq_init_attr *srq_init_attr);
	struct ibv_srq *(*create_srq_ex)(
		struct ibv_context *context,
		struct ibv_srq_init_attr_ex *srq_init_attr_ex);
	struct ibv_wq *(*create_wq)(struct ibv_context *context,
				    struct ibv_wq_init_attr *wq_init_attr);
	int (*dealloc_mw)(struct ibv_mw *mw);
	int (*dealloc_pd)(struct ibv_pd *pd);
	int (*dealloc_td)(struct ibv_td *td);
	int (*dereg_mr)(struct verbs_mr *vmr);
	int (*destroy_ah)(struct ibv_ah *ah);
	int (*destroy_counters)(struct ibv_counters *counters);
	int (*destroy_cq)(struct ibv_cq *cq);
	int (*destroy_flow)(struct ibv_flow *flow);
	int (*destroy_flow_action)(struct ibv_flow_action *action);
	int (*destroy_qp)(struct ibv_qp *qp);
	int (*destroy_rwq_ind_table)(struct ibv_rwq_ind_table *rwq_ind_table);
	int (*destroy_srq)(struct ibv_srq *srq);
	int (*destroy_wq)(struct ibv_wq *wq);
	int (*detach_mcast)(struct ibv_qp *qp, const union ibv_gid *gid,
			    uint16_t lid);
	void (*free_context)(struct ibv_context *context);
	int (*free_dm)(struct ibv_dm *dm);
	int (*get_srq_num)(struct ibv_srq *srq, uint32_t *srq_num);
	struct ibv_dm *(*import_dm)(struct ibv_context *context,
				    uint32_t dm_handle);
	struct ibv_mr *(*import_mr)(struct ibv_pd *pd, uint32_t mr_handle);
	struct ibv_pd *(*import_pd)(struct ibv_context *context,
				    uint32_t pd_handle);
	int (*modify_cq)(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
	int (*modify_flow_action_esp)(struct ibv_flow_action *action,
				      struct ibv_flow_action_esp_attr *attr);
	int (*modify_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr,
			 int attr_mask);
	int (*modify_qp_rate_limit)(struct ibv_qp *qp,
				    struct ibv_qp_rate_limit_attr *attr);
	int (*modify_srq)(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr,
			  int srq_attr_mask);
	int (*modify_wq)(struct ibv_wq *wq, struct ibv_wq_attr *wq_attr);
	struct ibv_qp *(*open_qp)(struct ibv_context *context,
				  struct ibv_qp_open_attr *attr);
	struct ibv_xrcd *(*open_xrcd)(
		struct ibv_context *context,
		struct ibv_xrcd_init_attr *xrcd_init_attr);
	int (*poll_cq)(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
	int (*post_recv)(struct ibv_qp *qp, struct ibv_recv_wr *wr,
			 struct ibv_recv_wr **bad_wr);
	int (*post_send)(struct ibv_qp *qp, struct ibv_send_wr *wr,
			 struct ibv_send_wr **bad_wr);
	int (*post_srq_ops)(struct ibv_srq *srq, struct ibv_ops_wr *op,
			    struct ibv_ops_wr **bad_op);
	int (*post_srq_recv)(struct ibv_srq *srq, struct ibv_recv_wr *recv_wr,
			     struct ibv_recv_wr **bad_recv_wr);
	int (*query_device_ex)(struct ibv_context *context,
			       const struct ibv_query_device_ex_input *input,
			       struct ibv_device_attr_ex *attr,
			       size_t attr_size);
	int (*query_ece)(struct ibv_qp *qp, struct ibv_ece *ece);
	int (*query_port)(struct ibv_context *context, uint8_t port_num,
			  struct ibv_port_attr *port_attr);
	int (*query_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr,
			int attr_mask, struct ibv_qp_init_attr *init_attr);
	int (*query_qp_data_in_order)(struct ibv_qp *qp, enum ibv_wr_opcode op,
				      uint32_t flags);
	int (*query_rt_values)(struct ibv_context *context,
			       struct ibv_values_ex *values);
	int (*query_srq)(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr);
	int (*read_counters)(struct ibv_counters *counters,
			     uint64_t *counters_value, uint32_t ncounters,
			     uint32_t flags);
	struct ibv_mr *(*reg_dm_mr)(struct ibv_pd *pd, struct ibv_dm *dm,
				    uint64_t dm_offset, size_t length,
				    unsigned int access);
	struct ibv_mr *(*reg_dmabuf_mr)(struct ibv_pd *pd, uint64_t offset,
					size_t length, uint64_t iova, int fd,
					int access);
	struct ibv_mr *(*reg_mr)(struct ibv_pd *pd, void *addr, size_t length,
				 uint64_t hca_va, int access);
	int (*req_notify_cq)(struct ibv_cq *cq, int solicited_only);
	int (*rereg_mr)(struct verbs_mr *vmr, int flags, struct ibv_pd *pd,
			void *addr, size_t length, int access);
	int (*resize_cq)(struct ibv_cq *cq, int cqe);
	int (*set_ece)(struct ibv_qp *qp, struct ibv_ece *ece);
	void (*unimport_dm)(struct ibv_dm *dm);
	void (*unimport_mr)(struct ibv_mr *mr);
	void (*unimport_pd)(struct ibv_pd *pd);
};

/*
 * A new @type with the context as @member, initialised.  It owns @cmd_fd from
 * here on, also when this fails.
 */
#define verbs_init_and_alloc_context(device, cmd_fd, ptr, member, driver_id)  \
	((__typeof__(ptr))_verbs_init_and_alloc_context(                      \
		(device), (cmd_fd), sizeof(*(ptr)),                           \
		(struct verbs_context *)offsetof(__typeof__(*(ptr)), member), \
		(driver_id)))

void *_verbs_init_and_alloc_context(struct ibv_device *device, int cmd_fd,
				    size_t alloc_size,
				    struct verbs_context *context_offset,
				    uint32_t driver_id);
void verbs_uninit_context(struct verbs_context *context);
void verbs_set_ops(struct verbs_context *context,
		   const struct verbs_context_ops *ops);
void verbs_init_cq(struct ibv_cq *cq, struct ibv_context *context,
		   struct ibv_comp_channel *channel, void *cq_context);

/* Silent unless the user sets VERBS_LOG_FILE and VERBS_LOG_LEVEL. */
enum {
	VERBS_LOG_LEVEL_NONE,
	VERBS_LOG_ERR,
	VERBS_LOG_WARN,
	VERBS_LOG_INFO,
	VERBS_LOG_DEBUG,
};

void __verbs_log(struct verbs_context *context, uint32_t level,
		 const char *format, ...) __attribute__((format(printf, 3, 4)));

#define verbs_err(vctx, format, ...)                      \
	__verbs_log((vctx), VERBS_LOG_ERR, "%s: " format, \
		    (vctx)->context.device->name, ##__VA_ARGS__)

/* ------------------------------------------------------------------------
 * Commands: 0 or a positive errno
 */

int ibv_cmd_get_context(struct verbs_context *context,
			struct ibv_get_context *cmd, size_t cmd_size,
			struct ib_uverbs_get_context_resp *resp,
			size_t resp_size);
int ibv_cmd_query_device_any(struct ibv_context *context,
			     const struct ibv_query_device_ex_input *input,
			     struct ibv_device_attr_ex *attr, size_t attr_size,
			     struct ib_uverbs_ex_query_device_resp *resp,
			     size_t *resp_size);
int ibv_cmd_query_port(struct ibv_context *context, uint8_t port_num,
		       struct ibv_port_attr *attr, struct ibv_query_port *cmd,
		       size_t cmd_size);

int ibv_cmd_alloc_pd(struct ibv_context *context, struct ibv_pd *pd,
		     struct ibv_alloc_pd *cmd, size_t cmd_size,
		     struct ib_uverbs_alloc_pd_resp *resp, size_t resp_size);
int ibv_cmd_dealloc_pd(struct ibv_pd *pd);

int ibv_cmd_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
		   uint64_t hca_va, int access, struct verbs_mr *mr,
		   struct ibv_reg_mr *cmd, size_t cmd_size,
		   struct ib_uverbs_reg_mr_resp *resp, size_t resp_size);
int ibv_cmd_rereg_mr(struct verbs_mr *mr, uint32_t flags, void *addr,
		     size_t length, uint64_t hca_va, int access,
		     struct ibv_pd *pd, struct ibv_rereg_mr *cmd,
		     size_t cmd_size, struct ib_uverbs_rereg_mr_resp *resp,
		     size_t resp_size);
int ibv_cmd_query_mr(struct ibv_pd *pd, struct verbs_mr *mr,
		     uint32_t mr_handle);
int ibv_cmd_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice,
		      uint32_t flags, struct ibv_sge *sg_list,
		      uint32_t num_sge);
int ibv_cmd_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
			  uint64_t iova, int fd, int access,
			  struct verbs_mr *mr);
int ibv_cmd_dereg_mr(struct verbs_mr *mr);

int ibv_cmd_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type,
		     struct ibv_mw *mw, struct ibv_alloc_mw *cmd,
		     size_t cmd_size, struct ib_uverbs_alloc_mw_resp *resp,
		     size_t resp_size);
int ibv_cmd_dealloc_mw(struct ibv_mw *mw);

/* @link: attributes of the driver's own, or NULL. */
int ibv_cmd_query_context(struct ibv_context *context,
			  struct ibv_command_buffer *link);
int ibv_cmd_alloc_dm(struct ibv_context *context,
		     const struct ibv_alloc_dm_attr *attr, struct verbs_dm *dm,
		     struct ibv_command_buffer *link);
int ibv_cmd_free_dm(struct verbs_dm *dm);
int ibv_cmd_reg_dm_mr(struct ibv_pd *pd, struct verbs_dm *dm, uint64_t offset,
		      size_t length, unsigned int access, struct verbs_mr *mr,
		      struct ibv_command_buffer *link);

int ibv_cmd_create_cq_ex(struct ibv_context *context,
			 const struct ibv_cq_init_attr_ex *attr,
			 struct verbs_cq *cq, struct ibv_create_cq_ex *cmd,
			 size_t cmd_size,
			 struct ib_uverbs_ex_create_cq_resp *resp,
			 size_t resp_size, uint32_t cmd_flags);
int ibv_cmd_resize_cq(struct ibv_cq *cq, int cqe, struct ibv_resize_cq *cmd,
		      size_t cmd_size, struct ib_uverbs_resize_cq_resp *resp,
		      size_t resp_size);
int ibv_cmd_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr,
		      struct ibv_modify_cq *cmd, size_t cmd_size);
int ibv_cmd_req_notify_cq(struct ibv_cq *cq, int solicited_only);
int ibv_cmd_destroy_cq(struct ibv_cq *cq);

int ibv_cmd_create_ah(struct ibv_pd *pd, struct ibv_ah *ah,
		      struct ibv_ah_attr *attr,
		      struct ib_uverbs_create_ah_resp *resp, size_t resp_size);
int ibv_cmd_destroy_ah(struct ibv_ah *ah);
int ibv_cmd_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid,
			 uint16_t lid);
int ibv_cmd_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid,
			 uint16_t lid);

int ibv_cmd_open_xrcd(struct ibv_context *context, struct verbs_xrcd *xrcd,
		      int vxrcd_size, struct ibv_xrcd_init_attr *attr,
		      struct ibv_open_xrcd *cmd, size_t cmd_size,
		      struct ib_uverbs_open_xrcd_resp *resp, size_t resp_size);
int ibv_cmd_close_xrcd(struct verbs_xrcd *xrcd);
int ibv_cmd_open_qp(struct ibv_context *context, struct verbs_qp *qp,
		    int vqp_sz, struct ibv_qp_open_attr *attr,
		    struct ibv_open_qp *cmd, size_t cmd_size,
		    struct ib_uverbs_create_qp_resp *resp, size_t resp_size);

int ibv_cmd_create_srq_ex(struct ibv_context *context, struct verbs_srq *srq,
			  struct ibv_srq_init_attr_ex *attr_ex,
			  struct ibv_create_xsrq *cmd, size_t cmd_size,
			  struct ib_uverbs_create_srq_resp *resp,
			  size_t resp_size);
int ibv_cmd_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr,
		       int srq_attr_mask, struct ibv_modify_srq *cmd,
		       size_t cmd_size);
int ibv_cmd_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr,
		      struct ibv_query_srq *cmd, size_t cmd_size);
int ibv_cmd_destroy_srq(struct ibv_srq *srq);

int ibv_cmd_create_qp_ex(struct ibv_context *context, struct verbs_qp *qp,
			 struct ibv_qp_init_attr_ex *attr,
			 struct ibv_create_qp *cmd, size_t cmd_size,
			 struct ib_uverbs_create_qp_resp *resp,
			 size_t resp_size);
int ibv_cmd_create_qp_ex2(struct ibv_context *context, struct verbs_qp *qp,
			  struct ibv_qp_init_attr_ex *attr,
			  struct ibv_create_qp_ex *cmd, size_t cmd_size,
			  struct ib_uverbs_ex_create_qp_resp *resp,
			  size_t resp_size);
int ibv_cmd_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
		     struct ibv_qp_init_attr *init_attr,
		     struct ibv_query_qp *cmd, size_t cmd_size);
int ibv_cmd_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr,
		      int attr_mask, struct ibv_modify_qp *cmd,
		      size_t cmd_size);
int ibv_cmd_destroy_qp(struct ibv_qp *qp);

int ibv_cmd_create_wq(struct ibv_context *context,
		      struct ibv_wq_init_attr *attr, struct ibv_wq *wq,
		      struct ibv_create_wq *cmd, size_t cmd_size,
		      struct ib_uverbs_ex_create_wq_resp *resp,
		      size_t resp_size);
int ibv_cmd_modify_wq(struct ibv_wq *wq, struct ibv_wq_attr *attr,
		      struct ibv_modify_wq *cmd, size_t cmd_size);
int ibv_cmd_destroy_wq(struct ibv_wq *wq);
int ibv_cmd_create_rwq_ind_table(
	struct ibv_context *context, struct ibv_rwq_ind_table_init_attr *attr,
	struct ibv_rwq_ind_table *table,
	struct ib_uverbs_ex_create_rwq_ind_table_resp *resp, size_t resp_size);
int ibv_cmd_destroy_rwq_ind_table(struct ibv_rwq_ind_table *table);

int ibv_cmd_create_flow(struct ibv_qp *qp, struct ibv_flow *flow,
			struct ibv_flow_attr *attr, void *driver,
			size_t driver_size);
int ibv_cmd_destroy_flow(struct ibv_flow *flow);
int ibv_cmd_create_counters(struct ibv_context *context,
			    struct ibv_counters_init_attr *attr,
			    struct verbs_counters *counters,
			    struct ibv_command_buffer *link);
int ibv_cmd_read_counters(struct verbs_counters *counters, uint64_t *values,
			  uint32_t n, uint32_t flags,
			  struct ibv_command_buffer *link);
int ibv_cmd_destroy_counters(struct verbs_counters *counters);

/* ------------------------------------------------------------------------
 * The layout, where it was measured
 */

#ifdef __x86_64__
#define SF_PABI_SIZE(type, size) \
	static_assert(sizeof(struct type) == (size), #type " changed size")
#define SF_PABI_AT(type, member, offset)                         \
	static_assert(offsetof(struct type, member) == (offset), \
		      #type "." #member " moved")

SF_PABI_SIZE(verbs_device_ops, 72);
SF_PABI_AT(verbs_device_ops, match_min_abi_version, 8);
SF_PABI_AT(verbs_device_ops, match_max_abi_version, 12);
SF_PABI_AT(verbs_device_ops, match_table, 16);
SF_PABI_AT(verbs_device_ops, static_providers, 24);
SF_PABI_AT(verbs_device_ops, match_device, 32);
SF_PABI_AT(verbs_device_ops, alloc_context, 40);
SF_PABI_AT(verbs_device_ops, import_context, 48);
SF_PABI_AT(verbs_device_ops, alloc_device, 56);
SF_PABI_AT(verbs_device_ops, uninit_device, 64);

SF_PABI_SIZE(verbs_device, 712);
SF_PABI_AT(verbs_device, ops, 664);
SF_PABI_AT(verbs_device, refcount, 672);
SF_PABI_AT(verbs_device, entry, 680);
SF_PABI_AT(verbs_device, sysfs, 696);
SF_PABI_AT(verbs_device, core_support, 704);

SF_PABI_SIZE(verbs_match_ent, 24);
SF_PABI_AT(verbs_match_ent, u, 8);
SF_PABI_AT(verbs_match_ent, vendor, 16);
SF_PABI_AT(verbs_match_ent, device, 18);
SF_PABI_AT(verbs_match_ent, kind, 20);

SF_PABI_SIZE(verbs_sysfs_dev, 992);
SF_PABI_AT(verbs_sysfs_dev, provider_data, 16);
SF_PABI_AT(verbs_sysfs_dev, match, 24);
SF_PABI_AT(verbs_sysfs_dev, flags, 32);
SF_PABI_AT(verbs_sysfs_dev, sysfs_name, 36);
SF_PABI_AT(verbs_sysfs_dev, sysfs_cdev, 104);
SF_PABI_AT(verbs_sysfs_dev, ibdev_name, 112);
SF_PABI_AT(verbs_sysfs_dev, ibdev_path, 176);
SF_PABI_AT(verbs_sysfs_dev, modalias, 432);
SF_PABI_AT(verbs_sysfs_dev, node_guid, 944);
SF_PABI_AT(verbs_sysfs_dev, driver_id, 952);
SF_PABI_AT(verbs_sysfs_dev, node_type, 956);
SF_PABI_AT(verbs_sysfs_dev, ibdev_idx, 960);
SF_PABI_AT(verbs_sysfs_dev, num_ports, 964);
SF_PABI_AT(verbs_sysfs_dev, abi_ver, 968);
SF_PABI_AT(verbs_sysfs_dev, time_created, 976);

SF_PABI_SIZE(verbs_context, 648);
SF_PABI_AT(verbs_context, query_port, 0);
SF_PABI_AT(verbs_context, create_cq_ex, 200);
SF_PABI_AT(verbs_context, priv, 208);
SF_PABI_AT(verbs_context, query_device_ex, 216);
SF_PABI_AT(verbs_context, create_qp_ex, 264);
SF_PABI_AT(verbs_context, sz, 312);
SF_PABI_AT(verbs_context, context, 320);
SF_PABI_SIZE(ibv_context, 328);
SF_PABI_AT(ibv_context, cmd_fd, 264);
SF_PABI_AT(ibv_context, abi_compat, 320);

SF_PABI_SIZE(verbs_context_ops, 76 * 8);
SF_PABI_AT(verbs_context_ops, advise_mr, 0 * 8);
SF_PABI_AT(verbs_context_ops, alloc_dm, 1 * 8);
SF_PABI_AT(verbs_context_ops, alloc_mw, 2 * 8);
SF_PABI_AT(verbs_context_ops, alloc_null_mr, 3 * 8);
SF_PABI_AT(verbs_context_ops, alloc_parent_domain, 4 * 8);
SF_PABI_AT(verbs_context_ops, alloc_pd, 5 * 8);
SF_PABI_AT(verbs_context_ops, alloc_td, 6 * 8);
SF_PABI_AT(verbs_context_ops, attach_counters_point_flow, 8 * 8);
SF_PABI_AT(verbs_context_ops, attach_mcast, 9 * 8);
SF_PABI_AT(verbs_context_ops, bind_mw, 10 * 8);
SF_PABI_AT(verbs_context_ops, close_xrcd, 11 * 8);
SF_PABI_AT(verbs_context_ops, create_ah, 13 * 8);
SF_PABI_AT(verbs_context_ops, create_counters, 14 * 8);
SF_PABI_AT(verbs_context_ops, create_cq, 15 * 8);
SF_PABI_AT(verbs_context_ops, create_cq_ex, 16 * 8);
SF_PABI_AT(verbs_context_ops, create_flow, 17 * 8);
SF_PABI_AT(verbs_context_ops, create_qp, 19 * 8);
SF_PABI_AT(verbs_context_ops, create_qp_ex, 20 * 8);
SF_PABI_AT(verbs_context_ops, create_rwq_ind_table, 21 * 8);
SF_PABI_AT(verbs_context_ops, create_srq, 22 * 8);
SF_PABI_AT(verbs_context_ops, create_srq_ex, 23 * 8);
SF_PABI_AT(verbs_context_ops, create_wq, 24 * 8);
SF_PABI_AT(verbs_context_ops, dealloc_mw, 25 * 8);
SF_PABI_AT(verbs_context_ops, dealloc_pd, 26 * 8);
SF_PABI_AT(verbs_context_ops, dealloc_td, 27 * 8);
SF_PABI_AT(verbs_context_ops, dereg_mr, 28 * 8);
SF_PABI_AT(verbs_context_ops, destroy_ah, 29 * 8);
SF_PABI_AT(verbs_context_ops, destroy_counters, 30 * 8);
SF_PABI_AT(verbs_context_ops, destroy_cq, 31 * 8);
SF_PABI_AT(verbs_context_ops, destroy_flow, 32 * 8);
SF_PABI_AT(verbs_context_ops, destroy_qp, 34 * 8);
SF_PABI_AT(verbs_context_ops, destroy_rwq_ind_table, 35 * 8);
SF_PABI_AT(verbs_context_ops, destroy_srq, 36 * 8);
SF_PABI_AT(verbs_context_ops, destroy_wq, 37 * 8);
SF_PABI_AT(verbs_context_ops, detach_mcast, 38 * 8);
SF_PABI_AT(verbs_context_ops, free_context, 39 * 8);
SF_PABI_AT(verbs_context_ops, free_dm, 40 * 8);
SF_PABI_AT(verbs_context_ops, get_srq_num, 41 * 8);
SF_PABI_AT(verbs_context_ops, import_dm, 42 * 8);
SF_PABI_AT(verbs_context_ops, import_mr, 43 * 8);
SF_PABI_AT(verbs_context_ops, import_pd, 44 * 8);
SF_PABI_AT(verbs_context_ops, modify_qp, 47 * 8);
SF_PABI_AT(verbs_context_ops, modify_srq, 49 * 8);
SF_PABI_AT(verbs_context_ops, modify_wq, 50 * 8);
SF_PABI_AT(verbs_context_ops, open_qp, 51 * 8);
SF_PABI_AT(verbs_context_ops, open_xrcd, 52 * 8);
SF_PABI_AT(verbs_context_ops, poll_cq, 53 * 8);
SF_PABI_AT(verbs_context_ops, post_recv, 54 * 8);
SF_PABI_AT(verbs_context_ops, post_send, 55 * 8);
SF_PABI_AT(verbs_context_ops, post_srq_recv, 57 * 8);
SF_PABI_AT(verbs_context_ops, query_device_ex, 58 * 8);
SF_PABI_AT(verbs_context_ops, query_port, 60 * 8);
SF_PABI_AT(verbs_context_ops, query_qp, 61 * 8);
SF_PABI_AT(verbs_context_ops, query_rt_values, 63 * 8);
SF_PABI_AT(verbs_context_ops, query_srq, 64 * 8);
SF_PABI_AT(verbs_context_ops, read_counters, 65 * 8);
SF_PABI_AT(verbs_context_ops, reg_dm_mr, 66 * 8);
SF_PABI_AT(verbs_context_ops, reg_dmabuf_mr, 67 * 8);
SF_PABI_AT(verbs_context_ops, reg_mr, 68 * 8);
SF_PABI_AT(verbs_context_ops, req_notify_cq, 69 * 8);
SF_PABI_AT(verbs_context_ops, rereg_mr, 70 * 8);
SF_PABI_AT(verbs_context_ops, resize_cq, 71 * 8);
SF_PABI_AT(verbs_context_ops, unimport_dm, 73 * 8);
SF_PABI_AT(verbs_context_ops, unimport_mr, 74 * 8);
SF_PABI_AT(verbs_context_ops, unimport_pd, 75 * 8);

/* Follows the installed verbs.h; the run-time check compares with libibverbs.
 */
SF_PABI_AT(ibv_qp_ex, qp_base, 0);
SF_PABI_AT(verbs_qp, comp_mask, sizeof(struct ibv_qp_ex));
SF_PABI_SIZE(verbs_qp, sizeof(struct ibv_qp_ex) + 16);
SF_PABI_SIZE(ibv_qp, 160);
SF_PABI_SIZE(ibv_cq, 128);
SF_PABI_SIZE(verbs_cq, 288);
SF_PABI_SIZE(verbs_mr, 56);
SF_PABI_AT(verbs_mr, mr_type, 48);
SF_PABI_AT(verbs_mr, access, 52);
SF_PABI_SIZE(ibv_dm, 32);
SF_PABI_SIZE(verbs_dm, 40);
SF_PABI_SIZE(ibv_mw, 32);
SF_PABI_SIZE(verbs_xrcd, 16);
SF_PABI_SIZE(ibv_srq, 128);
SF_PABI_SIZE(verbs_srq, 160);
SF_PABI_AT(verbs_srq, srq_type, 128);
SF_PABI_AT(verbs_srq, xrcd, 136);
SF_PABI_AT(verbs_srq, cq, 144);
SF_PABI_AT(verbs_srq, srq_num, 152);
#endif

#endif

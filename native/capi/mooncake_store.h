#ifndef MOONCAKE_KV_MOONCAKE_STORE_H
#define MOONCAKE_KV_MOONCAKE_STORE_H

/*
 * The C interface of Mooncake's client library, as this package's own library offers it: libmooncake_store.so with the
 * embedded store behind it, for programs that load Mooncake at run time and want to be tested without a cluster.
 *
 * Stores that are set up with one master address, in one process, are clients of one embedded store. Its memory is the
 * segment of the first client that brings one; when that client is destroyed, the objects are gone with it.
 *
 * Codes are Mooncake's: 0 or more is success, a negative number an error. A null argument gives -1, as does a null buffer
 * with bytes. Keys end at NUL. Unlike Mooncake's, calls before setup give -600 and do not crash, and no bad string ends
 * the process, unless MOONCAKE_KV_IMITATE asks for it. Two environment variables, read at the first setup of a master
 * address and at the first create:
 *
 *   MOONCAKE_KV_MASTER_FLAGS  flags of the master, as "default_kv_lease_ttl=500,eviction_ratio=0.1"
 *   MOONCAKE_KV_IMITATE       what the real library does to its host: see imitation.h
 */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One client. */
typedef void* mooncake_store_t;

/* How an object is kept. A null pointer to one stands for one replica and no pins. */
struct mooncake_replicate_config {
  size_t replica_num; /* 0 is refused with -600 */
  int with_soft_pin;
  int with_hard_pin;
  const char** preferred_segments; /* preferred_segments_count names; ignored, there is one segment */
  size_t preferred_segments_count;
};
typedef struct mooncake_replicate_config mooncake_replicate_config_t;

/* Null when there is no memory. */
mooncake_store_t mooncake_store_create(void);
/* Closes the client. Null is fine. */
void mooncake_store_destroy(mooncake_store_t store);

/*
 * Joins the store of `master_server_addr`, with a segment of `global_segment_size` bytes (0, or 16 MiB and more). A
 * second setup gives 0 and changes nothing. -600: an empty host name, a segment that is too small, an unknown metadata
 * server, or no master. -1: a protocol other than tcp or rdma.
 */
int mooncake_store_setup(mooncake_store_t store, const char* local_hostname, const char* metadata_server,
                         uint64_t global_segment_size, uint64_t local_buffer_size, const char* protocol,
                         const char* device_name, const char* master_server_addr);
/* The same with addresses of this machine. */
int mooncake_store_init_all(mooncake_store_t store, const char* protocol, const char* device_name,
                            uint64_t mount_segment_size);
/* 0: healthy. 1: not set up. */
int mooncake_store_health_check(mooncake_store_t store);

/* Copies through a buffer of local_buffer_size bytes: -600 for a larger value, and for an empty one. */
int mooncake_store_put(mooncake_store_t store, const char* key, const void* value, size_t size,
                       const mooncake_replicate_config_t* config);
/* 0 also for a key that exists, whose bytes stay, and for size 0, which stores nothing. -200: no room. -800: bad memory. */
int mooncake_store_put_from(mooncake_store_t store, const char* key, void* buffer, size_t size,
                            const mooncake_replicate_config_t* config);
/* One code an item in results_out; the call itself gives 0. Of equal keys the last one's buffer counts for all. */
int mooncake_store_batch_put_from(mooncake_store_t store, const char** keys, void** buffers, const size_t* sizes,
                                  size_t count, const mooncake_replicate_config_t* config, int* results_out);

/* The bytes read; a larger buffer is fine. -704: absent. -600: the buffer is too small. -707: the lease ran out. */
int64_t mooncake_store_get_into(mooncake_store_t store, const char* key, void* buffer, size_t size);
/* One number an item in results_out; the call itself gives 0. Of equal keys only the last valid buffer is written. */
int mooncake_store_batch_get_into(mooncake_store_t store, const char** keys, void** buffers, const size_t* sizes,
                                  size_t count, int64_t* results_out);

/* 1 or 0, or a code. */
int mooncake_store_is_exist(mooncake_store_t store, const char* key);
int mooncake_store_batch_is_exist(mooncake_store_t store, const char** keys, size_t count, int* results_out);
/* Bytes, or a code. */
int64_t mooncake_store_get_size(mooncake_store_t store, const char* key);
/* Writes the name and its NUL into `buf_out`: 0, or -1 when it has no room. */
int mooncake_store_get_hostname(mooncake_store_t store, char* buf_out, size_t buf_len);

/* 0; -704; -706 under a lease, unless `force`; -703 while the object is written. */
int mooncake_store_remove(mooncake_store_t store, const char* key, int force);
/* How many were removed, or a code: -600 for a bad pattern. */
int64_t mooncake_store_remove_by_regex(mooncake_store_t store, const char* pattern, int force);
int64_t mooncake_store_remove_all(mooncake_store_t store, int force);

/* 0, or -600 as Mooncake has it: no bytes, an overlap, an unknown start. Puts and gets need no registration. */
int mooncake_store_register_buffer(mooncake_store_t store, void* buffer, size_t size);
int mooncake_store_unregister_buffer(mooncake_store_t store, void* buffer);

#ifdef __cplusplus
}
#endif

#endif

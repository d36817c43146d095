export {
  encodeLookupRequest,
  encodeResetRequest,
  LOOKUP_FRAME_FORMS,
  type LookupFrameForm,
  type LookupQuestion,
  type ParsedRequest,
  parseRequest,
} from "./lookup-frames.js";
export {
  type LookupAnswer,
  type LookupChannelFailure,
  LookupKeyClient,
  type LookupKeyClientOptions,
} from "./lookup-key-client.js";
export { LookupKeyServer, type LookupKeyServerOptions } from "./lookup-key-server.js";
export {
  decodeLookupResponse,
  encodeLookupResponse,
  LOOKUP_MSG,
  type MooncakeLookupResult,
  RESET_MSG,
  RESP_ERR,
  RESP_OK,
  TAIL_KEY_BOUNDARY_ENTRY_SIZE,
} from "./lookup-protocol.js";
export {
  type LookupCounters,
  type LookupHandlers,
  type LookupOutcome,
  type LookupProblem,
  LookupResponder,
  type LookupResponderOptions,
  type ResetCall,
} from "./lookup-responder.js";
export { type LookupTransport, ZeroMqLookupTransport } from "./lookup-transport.js";
export { type LookupSocketOptions, lookupSocketPath, MAX_SOCKET_PATH, socketFile } from "./socket-path.js";

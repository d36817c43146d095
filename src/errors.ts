export {
  describe,
  type ErrorCode,
  isMooncakeKvError,
  MooncakeKvError,
} from "../generated/typescript/runtime/errors.js";

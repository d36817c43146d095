export { didYouMean, nearest } from "../checks/nearest.js";

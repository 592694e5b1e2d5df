import { parseJson } from '../../domain/json/json.ts';
import type { ModelPart } from '../../domain/model.ts';
import type { JsonObject } from '../protocol/json-rpc.ts';
import { toObject } from './model-api.ts';

type CallPart = Extract<ModelPart, { type: 'call' }>;

/** The arguments that a model wrote, empty where they are no JSON object: it reads that in the result of the call. */
export function readArguments({ arguments: json }: CallPart): object {
  try {
    const value = parseJson(json);
    return Array.isArray(value) ? {} : toObject(value);
  } catch {
    return {};
  }
}

/** What a host sent with a part, and gets back with it. The input of the operation was checked to be an object. */
export function readMeta({ meta }: ModelPart): JsonObject {
  return meta === undefined ? {} : toObject(parseJson(meta));
}

import { createHash } from 'node:crypto';
import { parseJson } from '../../domain/json/json.ts';
import { AppError } from '../../errors.ts';
import type { JsonFields } from '../document/lenient.ts';
import type { ImportedConfig } from '../plan/plan-import.ts';
import type { AnyTool } from './merge-tools.ts';

/**
 * A server as an import generated it: fields for all tools, and the tools by the operation that they were made of.
 * `known` are digests of all operations of the document, so that new ones can be told from those that nobody wanted.
 */
export type Generated = { server: JsonFields; tools: { [operation: string]: AnyTool }; known?: string[] };

/** Fields of a server that an import generates and that hold no secret. */
export const generatedFields = ['description', 'base_url', 'variables'] as const;

export function generatedOf(config: ImportedConfig, keys: readonly string[]): Generated {
  return {
    server: generatedServer(config),
    tools: toolsByOperation(config.tools as AnyTool[]),
    known: keys.map(operationDigest),
  };
}

/** Digest of the key of an operation. 48 bits are enough to tell the operations of one document apart. */
export function operationDigest(key: string): string {
  return createHash('sha256').update(key).digest('base64url').slice(0, 8);
}

export function generatedServer(config: JsonFields): JsonFields {
  return Object.fromEntries(
    generatedFields.flatMap((name) => (config[name] === undefined ? [] : [[name, config[name]]])),
  );
}

export function toolsByOperation(tools: readonly AnyTool[]): Generated['tools'] {
  return Object.fromEntries(
    tools.flatMap((tool) => (tool.imported_from === undefined ? [] : [[tool.imported_from, tool]])),
  );
}

/** Reads the stored text of a `Generated`; nothing was generated where there is none. @throws AppError */
export function readGenerated(text: string | undefined): Generated {
  if (text === undefined) return { server: {}, tools: {} };
  try {
    return parseJson(text) as Generated;
  } catch (error) {
    throw new AppError('unavailable', 'the stored import of this server cannot be read', { cause: error });
  }
}

import { AppError } from '../../errors.ts';
import type { JsonFields } from '../document/lenient.ts';
import type { ImportedConfig } from '../plan/plan-import.ts';
import type { AnyTool } from './merge-tools.ts';

/** A server as an import generated it: fields for all tools, and the tools by the operation that they were made of. */
export type Generated = { server: JsonFields; tools: { [operation: string]: AnyTool } };

/** JsonFields of a server that an import generates and that hold no secret. */
export const generatedFields = ['description', 'base_url', 'variables'] as const;

export function generatedOf(config: ImportedConfig): Generated {
  return { server: generatedServer(config), tools: toolsByOperation(config.tools as AnyTool[]) };
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
    return JSON.parse(text) as Generated;
  } catch (error) {
    throw new AppError('unavailable', 'the stored import of this server cannot be read', { cause: error });
  }
}

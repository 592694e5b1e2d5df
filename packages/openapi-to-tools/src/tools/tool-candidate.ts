import type { JsonSchema } from '@toolhost/json-schema/json-schema';
import type { ArgumentLocation } from '@toolhost/tool-config/input-schema';
import type { Annotations } from '@toolhost/tool-config/tool';
import type { ApiOperation } from '../model.ts';
import type { ImportOutcome } from '../plan-outline.ts';

/** Argument of a tool that is being built. */
export type ArgumentDraft = {
  name: string;
  wireName: string;
  location: ArgumentLocation;
  required: boolean;
  schema: JsonSchema;
  /** Keywords that control how the argument is sent, besides `in` and `wire_name`. */
  wire: { readonly [keyword: string]: unknown };
  /** Text before the value in the path. */
  prefix?: string;
};

/** Tool in its configuration form. The fields that a reader of the file looks for come first. */
export type ImportedTool = {
  name: string;
  description: string;
  method: string;
  url: string;
  headers?: Record<string, string>;
  credential?: string;
  input_schema: Record<string, unknown>;
  body?: string;
  response_headers?: string[];
  redirects?: 'follow';
  annotations?: Annotations;
  tags?: string[];
  /** Key of the operation that the tool was generated from. */
  imported_from?: string;
};

/** Import result of an operation. `tool` is undefined if the operation was skipped. */
export type ToolCandidate = {
  operation: ApiOperation;
  name: string;
  tool: ImportedTool | undefined;
  /** True if the operation was skipped because the configuration check would reject its tool. */
  isRejected?: boolean;
  /** Inputs that were left out because the configuration check would reject them: wire name to reason. */
  rejectedInputs?: ReadonlyMap<string, string>;
  outcome: ImportOutcome;
  /** Loosened constraints, missing inputs, or the reason why the operation was skipped. */
  notes: readonly string[];
  /** Mistakes in the document that the import corrected. */
  repairs: readonly string[];
  /** Estimated token cost in tools/list. */
  tokens: number;
};

/** Collects decisions about an operation while its tool is built. */
export class BuildReport {
  readonly repairs = new Set<string>();
  skipReason: string | undefined;

  /** Skips the operation. Only the first reason is reported. */
  skip(reason: string): void {
    this.skipReason ??= reason;
  }

  /** Skips the operation if a part of its request that cannot be sent is required. */
  skipIfRequired(reason: string, isRequired: boolean): void {
    if (isRequired) this.skip(reason);
  }
}

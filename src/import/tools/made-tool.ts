import type { ArgumentLocation } from '../../domain/config/input-schema.ts';
import type { Annotations } from '../../domain/config/tool.ts';
import type { JsonSchema } from '../../domain/schema/json-schema.ts';
import type { ApiOperation } from '../model.ts';
import type { ImportOutcome } from '../plan-outline.ts';

/** An argument of a tool that is being made. */
export type MadeArgument = {
  name: string;
  wireName: string;
  location: ArgumentLocation;
  required: boolean;
  schema: JsonSchema;
  /** Keywords that say how it is sent, besides `in` and `wire_name`. */
  wire: { readonly [keyword: string]: unknown };
  /** Text before it in the path. */
  prefix?: string;
};

/** A tool as the configuration has it. The fields that a reader of the file looks for come first. */
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
  /** The operation that it was made of. */
  imported_from?: string;
};

/** What became of an operation. `tool` is missing when it was skipped. */
export type MadeTool = {
  operation: ApiOperation;
  name: string;
  tool: ImportedTool | undefined;
  /** Whether it was skipped because the check of configurations would refuse its tool. */
  isRefused?: boolean;
  /** Reasons why the check of configurations would refuse inputs, which were left out, by their names on the wire. */
  refused?: ReadonlyMap<string, string>;
  outcome: ImportOutcome;
  /** What was loosened, which input is missing, or why it was skipped. */
  notes: readonly string[];
  repairs: readonly string[];
  /** Estimated cost in a list of tools. */
  tokens: number;
};

/** Collects decisions about an operation while its tool is made. */
export class Report {
  readonly repairs = new Set<string>();
  skipped: string | undefined;

  /** The first reason counts. */
  skip(reason: string): void {
    this.skipped ??= reason;
  }

  /** A part of the request that cannot be sent: without a required one there is no tool. */
  skipRequired(what: string, isRequired: boolean): void {
    if (isRequired) this.skip(what);
  }
}

import { createHash } from 'node:crypto';
import { parseJson } from '../../domain/json/json.ts';
import { AppError } from '../../errors.ts';
import type { JsonFields } from '../document/lenient.ts';
import type { ImportedConfig, ImportPlan } from '../plan/plan-import.ts';
import type { AnyTool } from './merge-tools.ts';

/**
 * A server as an import generated it: fields for all tools, and the tools by the operation that they were made of.
 * `known` are digests of all operations of the document, so that new ones can be told from those that nobody wanted.
 */
export type Generated = {
  server: JsonFields;
  tools: { [operation: string]: AnyTool };
  known?: string[];
  /** The ids that the operations of the tools have in the document, by which they are found again elsewhere. */
  ids?: { [operation: string]: string };
};

/** Fields of a server that an import generates and that hold no secret. */
export const generatedFields = ['description', 'base_url', 'variables'] as const;

export function generatedOf(config: ImportedConfig, plan: ImportPlan): Generated {
  const tools = toolsByOperation(config.tools as AnyTool[]);
  return { server: generatedServer(config), tools, known: plan.keys.map(operationDigest), ids: idsOf(tools, plan) };
}

/** The ids of the operations of tools; `before` has those of operations that are gone. */
export function idsOf(
  tools: Generated['tools'],
  { all, keys }: ImportPlan,
  before?: Generated,
): NonNullable<Generated['ids']> {
  const now = new Map(all.map(({ operation }, index) => [keys[index], operation.operationId]));
  return Object.fromEntries(
    Object.keys(tools).flatMap((key) => {
      const id = now.has(key) ? now.get(key) : before?.ids?.[key];
      return id === undefined ? [] : [[key, id.slice(0, longestId)]];
    }),
  );
}

/** Longest part of an id that is kept; the ids of real documents are far shorter. */
const longestId = 200;

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

/** An operation of a document: its key, such as `GET /pets/{id}`, and its id. */
type KnownOperation = { key: string; id: string | undefined };

/**
 * The operations of tools that are gone and that are new elsewhere: with the same id, or else under the same path but for
 * its version. The new key by the old one; an operation that could be one of several is none of them.
 */
export function movedOperations(
  present: ReadonlySet<string>,
  now: readonly KnownOperation[],
  before: Generated,
): Map<string, string> {
  const keys = new Set(now.map(({ key }) => key));
  const known = before.known && new Set(before.known);
  const isKnown = (key: string) => known?.has(operationDigest(key)) ?? Object.hasOwn(before.tools, key);
  const gone = [...present].flatMap((key) => (keys.has(key) ? [] : [{ key, id: before.ids?.[key] }]));
  const fresh = gone.length === 0 ? [] : now.filter(({ key }) => !present.has(key) && !isKnown(key));
  const moved = pairs(gone, fresh, ({ id }) => id?.slice(0, longestId));
  const taken = new Set(moved.values());
  const left = gone.filter(({ key }) => !moved.has(key));
  const rest = fresh.filter(({ key }) => !taken.has(key));
  return new Map([...moved, ...pairs(left, rest, ({ key }) => withoutVersion(key))]);
}

/** The keys of operations on both sides that have the same trait, as long as no other one of their side has it. */
function pairs(
  gone: readonly KnownOperation[],
  fresh: readonly KnownOperation[],
  traitOf: (operation: KnownOperation) => string | undefined,
): Map<string, string> {
  const byTrait = Map.groupBy(fresh, traitOf);
  const found = [...Map.groupBy(gone, traitOf)].flatMap(([trait, [one, ...others]]): [string, string][] => {
    const [other, ...more] = (trait !== undefined && byTrait.get(trait)) || [];
    return one && other && others.length + more.length === 0 ? [[one.key, other.key]] : [];
  });
  return new Map(found);
}

const version = /^(?:v?\d+(?:\.\d+)*(?:(?:alpha|beta|preview|rc)\d*)?|\d{4}-\d\d(?:-\d\d)?|api|rest)$/i;

/** `GET /api/v1/pets/{id}` → `GET /pets/{}`. */
function withoutVersion(key: string): string {
  return key
    .split('/')
    .filter((segment) => !version.test(segment))
    .join('/')
    .replaceAll(/\{[^{}]*\}/g, '{}');
}

import { createHash } from 'node:crypto';
import { parseJson } from '../../domain/json/json.ts';
import { AppError } from '../../errors.ts';
import type { JsonFields } from '../document/lenient.ts';
import type { ImportedConfig, ImportPlan } from '../plan/plan-import.ts';
import type { AnyTool } from './merge-tools.ts';

/**
 * Server as an import generated it: server fields, and tools by the operation that they were generated from. `known`
 * holds digests of all operations in the document. It distinguishes new operations from those that were not chosen.
 */
export type Generated = {
  server: JsonFields;
  tools: { [operation: string]: AnyTool };
  known?: string[];
  /** Operation IDs of the tools' operations in the document. They identify an operation that moved. */
  ids?: { [operation: string]: string };
};

/** Server fields that an import generates and that contain no secrets. */
export const generatedFields = ['description', 'base_url', 'variables'] as const;

export function generatedOf(config: ImportedConfig, plan: ImportPlan): Generated {
  const tools = toolsByOperation(config.tools as AnyTool[]);
  return { server: generatedServer(config), tools, known: plan.keys.map(operationDigest), ids: idsOf(tools, plan) };
}

/** Returns the operation IDs of tools; `before` supplies those of removed operations. */
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

/** Maximum length of a stored operation ID; IDs in real documents are far shorter. */
const longestId = 200;

/** Returns a digest of an operation's key. 48 bits are enough to distinguish the operations of one document. */
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

/** Reads a stored `Generated`. Returns an empty one if there is none. @throws AppError */
export function readGenerated(text: string | undefined): Generated {
  if (text === undefined) return { server: {}, tools: {} };
  try {
    return parseJson(text) as Generated;
  } catch (error) {
    throw new AppError('unavailable', 'the stored import of this server cannot be read', { cause: error });
  }
}

/** Operation of a document: its key, such as `GET /pets/{id}`, and its operation ID. */
type KnownOperation = { key: string; id: string | undefined };

/**
 * Matches operations of tools that were removed from the document with new ones that have the same ID, or else the same
 * path except for its version. Returns the new key by the old one. Ambiguous matches are ignored.
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

/** Pairs the operations on both sides that have the same trait, if no other operation on their side has it. */
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

/** Removes version segments and parameter names: `GET /api/v1/pets/{id}` → `GET /pets/{}`. */
function withoutVersion(key: string): string {
  return key
    .split('/')
    .filter((segment) => !version.test(segment))
    .join('/')
    .replaceAll(/\{[^{}]*\}/g, '{}');
}

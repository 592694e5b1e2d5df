import { createHash } from 'node:crypto';
import { AppError } from '@toolhost/errors/errors';
import { parseJson } from '@toolhost/json/json';
import type { JsonFields } from '../document/lenient.ts';
import type { ImportedConfig, ImportPlan } from '../plan/plan-import.ts';
import type { ConfigTool } from './merge-tools.ts';

/**
 * Server as an import generated it: server fields, and tools by the operation that they were generated from. `known`
 * holds digests of all operations in the document. It distinguishes new operations from those that were not chosen.
 */
export type Generated = {
  server: JsonFields;
  tools: { [operation: string]: ConfigTool };
  known?: string[];
  /** Operation IDs of the tools' operations in the document. They identify an operation that moved. */
  ids?: { [operation: string]: string };
};

/** Server fields that an import generates and that contain no secrets. */
export const generatedFields = ['description', 'base_url', 'variables'] as const;

export function toGenerated(config: ImportedConfig, plan: ImportPlan): Generated {
  const tools = mapToolsByOperation(config.tools as ConfigTool[]);
  return {
    server: pickGeneratedFields(config),
    tools,
    known: plan.keys.map(getOperationDigest),
    ids: collectIds(tools, plan),
  };
}

/** Returns the operation IDs of tools; `before` supplies those of removed operations. */
export function collectIds(
  tools: Generated['tools'],
  { all, keys }: ImportPlan,
  before?: Generated,
): NonNullable<Generated['ids']> {
  const idByKey = new Map(all.map(({ operation }, index) => [keys[index], operation.operationId]));
  return Object.fromEntries(
    Object.keys(tools).flatMap((key) => {
      const id = idByKey.has(key) ? idByKey.get(key) : before?.ids?.[key];
      return id === undefined ? [] : [[key, id.slice(0, maxIdLength)]];
    }),
  );
}

/** Maximum length of a stored operation ID; IDs in real documents are far shorter. */
const maxIdLength = 200;

/** Returns a digest of an operation's key. 48 bits are enough to distinguish the operations of one document. */
export function getOperationDigest(key: string): string {
  return createHash('sha256').update(key).digest('base64url').slice(0, 8);
}

export function pickGeneratedFields(config: JsonFields): JsonFields {
  return Object.fromEntries(
    generatedFields.flatMap((name) => (config[name] === undefined ? [] : [[name, config[name]]])),
  );
}

export function mapToolsByOperation(tools: readonly ConfigTool[]): Generated['tools'] {
  return Object.fromEntries(
    tools.flatMap((tool) => (tool.imported_from === undefined ? [] : [[tool.imported_from, tool]])),
  );
}

/** Parses a stored `Generated`. Returns an empty one if none is stored. @throws AppError unavailable */
export function readGenerated(text: string | undefined): Generated {
  if (text === undefined) return { server: {}, tools: {} };
  try {
    return parseJson(text) as Generated;
  } catch (error) {
    throw new AppError('unavailable', 'the stored import of this server cannot be read', { cause: error });
  }
}

/** Operation of a document: its key, such as `GET /pets/{id}`, and its operation ID. */
type OperationIdentity = { key: string; id: string | undefined };

/**
 * Matches operations of tools that were removed from the document with new ones that have the same ID, or else the same
 * path except for its version. Returns the new key by the old one. Ambiguous matches are ignored.
 */
export function findMovedOperations(
  toolOperations: ReadonlySet<string>,
  operations: readonly OperationIdentity[],
  before: Generated,
): Map<string, string> {
  const keys = new Set(operations.map(({ key }) => key));
  const knownDigests = before.known && new Set(before.known);
  const wasKnown = (key: string) => knownDigests?.has(getOperationDigest(key)) ?? Object.hasOwn(before.tools, key);
  const removedOperations = [...toolOperations].flatMap((key) =>
    keys.has(key) ? [] : [{ key, id: before.ids?.[key] }],
  );
  const newOperations =
    removedOperations.length === 0 ? [] : operations.filter(({ key }) => !toolOperations.has(key) && !wasKnown(key));
  const moved = matchPairs(removedOperations, newOperations, ({ id }) => id?.slice(0, maxIdLength));
  const matchedKeys = new Set(moved.values());
  const unmatchedRemoved = removedOperations.filter(({ key }) => !moved.has(key));
  const unmatchedNew = newOperations.filter(({ key }) => !matchedKeys.has(key));
  return new Map([...moved, ...matchPairs(unmatchedRemoved, unmatchedNew, ({ key }) => removeVersion(key))]);
}

/** Pairs a removed and a new operation that have the same trait, if no other removed or new operation has it. */
function matchPairs(
  removedOperations: readonly OperationIdentity[],
  newOperations: readonly OperationIdentity[],
  getTrait: (operation: OperationIdentity) => string | undefined,
): Map<string, string> {
  const byTrait = Map.groupBy(newOperations, getTrait);
  const matches = [...Map.groupBy(removedOperations, getTrait)].flatMap(
    ([trait, [removedOperation, ...otherRemoved]]): [string, string][] => {
      const [newOperation, ...otherNew] = (trait !== undefined && byTrait.get(trait)) || [];
      return removedOperation && newOperation && otherRemoved.length + otherNew.length === 0
        ? [[removedOperation.key, newOperation.key]]
        : [];
    },
  );
  return new Map(matches);
}

/** Matches path segments with a version, and prefixes that often come or go with one. */
const versionPattern = /^(?:v?\d+(?:\.\d+)*(?:(?:alpha|beta|preview|rc)\d*)?|\d{4}-\d\d(?:-\d\d)?|api|rest)$/i;

/** Removes version segments and parameter names: `GET /api/v1/pets/{id}` → `GET /pets/{}`. */
function removeVersion(key: string): string {
  return key
    .split('/')
    .filter((segment) => !versionPattern.test(segment))
    .join('/')
    .replaceAll(/\{[^{}]*\}/g, '{}');
}

import { parseMediaType } from '@toolhost/tool-config/http/headers';
import { getField } from '../document/lenient.ts';
import type { ApiOperation } from '../model.ts';
import { addActions, splitByAction } from './actions.ts';
import { listFieldNames } from './body-fields.ts';
import { mergeOperations } from './join-operations.ts';
import type { NamedCall } from './named-calls.ts';

/** Request as an operation and, if a protocol such as GraphQL or JSON-RPC is used, the call that it makes. */
export type ReadRequest = { operation: ApiOperation; call: NamedCall | undefined };

/** Returns the operations of all requests to one address. */
export function toOperations(group: readonly ReadRequest[]): ApiOperation[] {
  const call = group[0]?.call;
  const operations = group.map(({ operation, call: requestCall }) =>
    requestCall ? { ...operation, body: requestCall.body } : operation,
  );
  if (!call)
    return groupByBody(operations).flatMap((bodyGroup) =>
      splitByAction(bodyGroup).flatMap((split) =>
        mergeBySharedFields(split.operations).map((operation) => addActions(operation, split.actions)),
      ),
    );
  return groupByBody(operations).map((bodyGroup) => {
    const operation = mergeOperations(bodyGroup);
    const path = `${operation.path}#${encodeURIComponent(call.name)}`;
    return { ...operation, path, operationId: operation.operationId ?? call.name };
  });
}

/**
 * Groups operations by kind of body, because only bodies of the same kind can be merged. A request without a body
 * belongs to the first group.
 */
function groupByBody(operations: readonly ApiOperation[]): ApiOperation[][] {
  const getBodyKind = ({ body }: ApiOperation) => {
    const [content] = body?.contents ?? [];
    return content && `${parseMediaType(content.mediaType)} ${getField(content.schema, 'type')}`;
  };
  const defaultKind = operations.map(getBodyKind).find((kind) => kind !== undefined);
  return [...Map.groupBy(operations, (operation) => getBodyKind(operation) ?? defaultKind).values()];
}

/**
 * Maximum number of clusters. With more clusters, the bodies have no common shapes, and one operation accepts them all.
 */
const maxClusters = 30;

/** Operations whose bodies share fields. */
type Cluster = { fields: ReadonlySet<string>; members: ReadonlySet<ApiOperation> };

/**
 * Merges operations unless their bodies share less than half of their fields. An operation without a body joins the
 * first cluster.
 */
function mergeBySharedFields(operations: readonly ApiOperation[]): ApiOperation[] {
  if (operations.length === 1) return [...operations];
  const shapes = Map.groupBy(operations, (operation) => [...listFieldNames(operation)].join('\n'));
  const withoutBody = shapes.get('') ?? [];
  shapes.delete('');
  let clusters: Cluster[] = [];
  for (const shapeGroup of shapes.values()) {
    const fields = listFieldNames(shapeGroup[0] as ApiOperation);
    const similar = clusters.filter((cluster) => areSimilar(cluster.fields, fields));
    const merged = {
      fields: new Set([...similar.flatMap((cluster) => [...cluster.fields]), ...fields]),
      members: new Set([...similar.flatMap((cluster) => [...cluster.members]), ...shapeGroup]),
    };
    clusters = [...clusters.filter((cluster) => !similar.includes(cluster)), merged];
    if (clusters.length > maxClusters) break;
  }
  if (clusters.length < 2 || clusters.length > maxClusters) return [mergeOperations(operations)];
  return clusters.map(({ fields, members }, index) => {
    const operation = mergeOperations(
      operations.filter((operation) => members.has(operation) || (index === 0 && withoutBody.includes(operation))),
    );
    const otherFields = new Set(
      clusters.flatMap((otherCluster, otherIndex) => (otherIndex === index ? [] : [...otherCluster.fields])),
    );
    const name = operation.summary || ([...fields].find((field) => !otherFields.has(field)) ?? '');
    return { ...operation, path: `${operation.path}#${encodeURIComponent(name.toWellFormed())}` };
  });
}

/** Returns true if two sets share at least half of the smaller one: requests may omit optional fields. */
function areSimilar(first: ReadonlySet<string>, second: ReadonlySet<string>): boolean {
  const [smaller, larger] = first.size < second.size ? [first, second] : [second, first];
  let shared = 0;
  for (const name of smaller) if (larger.has(name)) shared++;
  return shared * 2 >= smaller.size;
}

import { mediaTypeOf } from '../../domain/http/headers.ts';
import { field } from '../document/lenient.ts';
import type { ApiOperation } from '../model.ts';
import { splitByAction, withActions } from './actions.ts';
import { listFieldNames } from './body-fields.ts';
import { joinOperations } from './join-operations.ts';
import type { NamedCall } from './named-calls.ts';

/** Request as an operation and, if a protocol such as GraphQL or JSON-RPC is used, the call that it makes. */
export type ReadRequest = { operation: ApiOperation; call: NamedCall | undefined };

/** Returns the operations of all requests to one address. */
export function operationsOf(group: readonly ReadRequest[]): ApiOperation[] {
  const call = group[0]?.call;
  const all = group.map(({ operation, call: own }) => (own ? { ...operation, body: own.body } : operation));
  if (!call)
    return byBody(all).flatMap((same) =>
      splitByAction(same).flatMap(({ actions, operations }) =>
        joinBySharedFields(operations).map((one) => withActions(one, actions)),
      ),
    );
  return byBody(all).map((same) => {
    const operation = joinOperations(same);
    const path = `${operation.path}#${encodeURIComponent(call.name)}`;
    return { ...operation, path, operationId: operation.operationId ?? call.name };
  });
}

/**
 * Groups operations by kind of body, because only bodies of the same kind can be merged. A request without a body
 * belongs to the first group.
 */
function byBody(all: readonly ApiOperation[]): ApiOperation[][] {
  const kindOf = ({ body }: ApiOperation) => {
    const [content] = body?.contents ?? [];
    return content && `${mediaTypeOf(content.mediaType)} ${field(content.schema, 'type')}`;
  };
  const usual = all.map(kindOf).find((kind) => kind !== undefined);
  return [...Map.groupBy(all, (operation) => kindOf(operation) ?? usual).values()];
}

/**
 * Maximum number of clusters. With more of them, the bodies have no common shapes, and one operation accepts them all.
 */
const maxClusters = 30;

type Cluster = { fields: ReadonlySet<string>; members: ReadonlySet<ApiOperation> };

/**
 * Merges operations unless their bodies share less than half of their fields. An operation without a body joins the
 * first cluster.
 */
function joinBySharedFields(all: readonly ApiOperation[]): ApiOperation[] {
  if (all.length === 1) return [...all];
  const shapes = Map.groupBy(all, (operation) => [...listFieldNames(operation)].join('\n'));
  const bare = shapes.get('') ?? [];
  shapes.delete('');
  let clusters: Cluster[] = [];
  for (const same of shapes.values()) {
    const fields = listFieldNames(same[0] as ApiOperation);
    const near = clusters.filter((cluster) => areNear(cluster.fields, fields));
    const joined = {
      fields: new Set([...near.flatMap((cluster) => [...cluster.fields]), ...fields]),
      members: new Set([...near.flatMap((cluster) => [...cluster.members]), ...same]),
    };
    clusters = [...clusters.filter((cluster) => !near.includes(cluster)), joined];
    if (clusters.length > maxClusters) break;
  }
  if (clusters.length < 2 || clusters.length > maxClusters) return [joinOperations(all)];
  return clusters.map(({ fields, members }, index) => {
    const operation = joinOperations(all.filter((one) => members.has(one) || (index === 0 && bare.includes(one))));
    const others = new Set(clusters.flatMap((other, at) => (at === index ? [] : [...other.fields])));
    const name = operation.summary || ([...fields].find((one) => !others.has(one)) ?? '');
    return { ...operation, path: `${operation.path}#${encodeURIComponent(name.toWellFormed())}` };
  });
}

/** Returns true if two sets share at least half of the smaller one. Fields that some requests omit are optional. */
function areNear(one: ReadonlySet<string>, other: ReadonlySet<string>): boolean {
  const [small, large] = one.size < other.size ? [one, other] : [other, one];
  let shared = 0;
  for (const name of small) if (large.has(name)) shared++;
  return shared * 2 >= small.size;
}

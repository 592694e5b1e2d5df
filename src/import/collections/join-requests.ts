import { mediaTypeOf } from '../../domain/http/headers.ts';
import { field } from '../document/lenient.ts';
import type { ApiOperation } from '../model.ts';
import { splitByAction, withActions } from './actions.ts';
import { listFieldNames } from './body-fields.ts';
import { joinOperations } from './join-operations.ts';
import type { NamedCall } from './named-calls.ts';

/** A request as an operation, and the call of a protocol that it is. */
export type ReadRequest = { operation: ApiOperation; call: NamedCall | undefined };

/** The operations of requests to one address. */
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

/** Bodies of one kind can be joined. A request without a body belongs to the first of them. */
function byBody(all: readonly ApiOperation[]): ApiOperation[][] {
  const kindOf = ({ body }: ApiOperation) => {
    const [content] = body?.contents ?? [];
    return content && `${mediaTypeOf(content.mediaType)} ${field(content.schema, 'type')}`;
  };
  const usual = all.map(kindOf).find((kind) => kind !== undefined);
  return [...Map.groupBy(all, (operation) => kindOf(operation) ?? usual).values()];
}

/** Beyond this the bodies have no shape of their own, and one operation takes them all. */
const maxClusters = 30;

type Cluster = { fields: ReadonlySet<string>; members: ReadonlySet<ApiOperation> };

/** Operations whose bodies share less than half of their fields stay apart. One without a body is of the first. */
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

/** Returns whether two sets share at least half of the smaller one: fields that are left out are optional. */
function areNear(one: ReadonlySet<string>, other: ReadonlySet<string>): boolean {
  const [small, large] = one.size < other.size ? [one, other] : [other, one];
  let shared = 0;
  for (const name of small) if (large.has(name)) shared++;
  return shared * 2 >= small.size;
}

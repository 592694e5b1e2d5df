import { operatorOperations } from '../../src/operations/index.ts';
import { runOperation } from '../../src/operations/run-operation.ts';
import type { Json, TestToolhost } from './toolhost.ts';

/** Does what only the operator of the service can, inside its process. */
export async function operate(toolhost: TestToolhost, name: string, workspaceId: string, input: Json): Promise<Json> {
  const op = operatorOperations.find((candidate) => candidate.name === name);
  if (!op) throw new Error(`there is no ${name}`);
  const actor = { kind: 'operator', id: 'test', workspaceId, scopes: ['manage'], servers: undefined } as const;
  return (await runOperation(toolhost.running.app.runner, op, actor, input, 'test')) as Json;
}

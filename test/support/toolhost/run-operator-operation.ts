import { type Input, type Output, operatorOperations } from '@toolhost/server/operations';
import { runOperation } from '../../../apps/server/src/operations/run-operation.ts';
import type { TestToolhost } from './toolhost.ts';

/** Runs an operation of the service operator inside the service's process. */
export function runOperatorOperation<Name extends keyof typeof operatorOperations>(
  toolhost: TestToolhost,
  name: Name,
  workspaceId: string,
  input: Input<Name>,
): Promise<Output<Name>> {
  const actor = { kind: 'operator', id: 'test', workspaceId, scopes: ['manage'], servers: undefined } as const;
  return runOperation(toolhost.running.app.runner, operatorOperations[name], {
    actor,
    input,
    requestId: 'test',
  }) as Promise<Output<Name>>;
}

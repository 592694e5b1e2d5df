import { localWorkspace } from '../config.ts';
import { type Input, type OperationName, type Output, operations } from '../operations/index.ts';
import { createOperatorActor } from '../operations/operation.ts';
import { type Runner, runOperation } from '../operations/run-operation.ts';
import { releaseSlug } from '../store/servers/deleted-servers.ts';

/** Server operations of a development service, which serves files from a temporary database. */
export type DevServers = {
  run<Name extends OperationName>(name: Name, input: Input<Name>): Promise<Output<Name>>;
  /** Deletes a server. Unlike in a real service, a later server may reuse its slug. */
  remove(slug: string): Promise<void>;
};

export function createDevServers(runner: Runner): DevServers {
  const actor = createOperatorActor(localWorkspace.id);
  const runAsOperator: DevServers['run'] = (name, input) =>
    runOperation(runner, operations[name], { actor, input, requestId: 'dev' }) as ReturnType<
      typeof runAsOperator<typeof name>
    >;
  return {
    run: runAsOperator,
    async remove(slug) {
      await runAsOperator('deleteMcpServer', { slug });
      await releaseSlug(runner.db, localWorkspace.id, slug, runner.deps.now());
    },
  };
}

import { localWorkspace } from '../config.ts';
import { type Input, type OperationName, type Output, operations } from '../operations/index.ts';
import { operatorOf } from '../operations/operation.ts';
import { type Runner, runOperation } from '../operations/run-operation.ts';
import { freeSlug } from '../store/servers/deleted-servers.ts';

/** The servers of a service that serves files during development, from a database that is thrown away. */
export type DevServers = {
  run<Name extends OperationName>(name: Name, input: Input<Name>): Promise<Output<Name>>;
  /** Deletes a server. Unlike in a service that is used, a later server may have its slug. */
  remove(slug: string): Promise<void>;
};

export function createDevServers(runner: Runner): DevServers {
  const actor = operatorOf(localWorkspace.id);
  const run: DevServers['run'] = (name, input) =>
    runOperation(runner, operations[name], { actor, input, requestId: 'dev' }) as ReturnType<typeof run<typeof name>>;
  return {
    run,
    async remove(slug) {
      await run('deleteMcpServer', { slug });
      await freeSlug(runner.db, localWorkspace.id, slug, runner.parts.now());
    },
  };
}

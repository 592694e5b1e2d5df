import { Text } from '@mantine/core';
import { claudeCodeCommand } from '../../../src/domain/clients/terminal-clients.ts';
import { useSession } from '../frame/session.ts';
import { Section } from '../ui/section.tsx';
import { CodeBlock } from '../ui/text/code-block.tsx';

/** The management server, by which agents can do everything that people do here. */
export function AgentsSection() {
  const { management_url } = useSession();
  return (
    <Section title="Agents" text="An agent can make, check and try servers itself, through the management server.">
      <Text size="sm" mb="xs">
        It signs in as you; nothing has to be copied:
      </Text>
      <CodeBlock
        code={claudeCodeCommand({ name: 'toolhost', url: management_url, token: undefined })}
        label="command for Claude Code"
      />
    </Section>
  );
}

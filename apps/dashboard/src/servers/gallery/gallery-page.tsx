import { Badge, Box, Group, SimpleGrid, Text } from '@mantine/core';
import { Link, useSearchParams } from 'react-router';
import { type Config, getTools, isObject } from '../config.ts';
import { mask } from '../declared.ts';
import { NewPage, NewServer } from '../new/new-server-page.tsx';

const galleryPath = '/servers/new/gallery';

/** Gallery of complete servers for public APIs, to start a new server from: with one stored credential, or with logins. */
export function GalleryPage() {
  const slug = useSearchParams()[0].get('example');
  const selected = galleryExamples.find((example) => example.id === slug);
  if (selected)
    return (
      <NewPage
        title={`New server: ${selected.name}`}
        text={
          selected.isLogin
            ? 'Register an application at the provider first. Then replace the values that begin with YOUR, and store its secret.'
            : 'Nothing is stored until you create the server. Remove the tools you do not need.'
        }
        back={{ to: galleryPath, label: 'All examples' }}
      >
        <NewServer key={selected.id} initial={selected.config} />
      </NewPage>
    );
  return (
    <NewPage
      title="Start from an example"
      text="Complete servers for public APIs. You can change everything before you create one."
    >
      <SimpleGrid className="th-card" cols={{ base: 1, sm: 2, lg: 3 }} spacing="md" p={{ base: 'md', sm: 'lg' }}>
        {galleryExamples.map((example) => (
          <ExampleCard key={example.id} example={example} />
        ))}
      </SimpleGrid>
    </NewPage>
  );
}

function ExampleCard({ example: { id, name, description, secrets, config, isLogin } }: { example: GalleryExample }) {
  const secretText = secrets.length > 0 ? `Requires ${secrets.join(', ')}` : 'No credential required';
  const toolCount = getTools(config).length;
  const requirement = isLogin ? 'Requires an application at the provider' : secretText;
  return (
    <Box component={Link} to={`${galleryPath}?example=${id}`} className="th-card th-choice" p="lg">
      <Text fw={600}>{name}</Text>
      <Text size="sm" c="dimmed">
        {description}
      </Text>
      <Group gap="xs" mt="sm">
        <Badge variant="light">{toolCount === 1 ? '1 tool' : `${toolCount} tools`}</Badge>
        <Text size="xs" c="dimmed">
          {requirement}
        </Text>
      </Group>
    </Box>
  );
}

/** Server of the examples: its configuration and the names of the secrets it requires. */
type GalleryExample = {
  id: string;
  config: Config;
  name: string;
  description: string;
  secrets: string[];
  isLogin: boolean;
};

/** Example files, read by the build. */
const files = {
  ...import.meta.glob<{ default: Config }>('../../../../../examples/gallery/*.yaml', { eager: true }),
  ...import.meta.glob<{ default: Config }>('../../../../../examples/logins/*.yaml', { eager: true }),
};

/** Removes masks, which stand for secrets that are stored. A new server has none. */
const withoutMasks = (config: Config) => JSON.parse(JSON.stringify(config).replaceAll(`"${mask}"`, '""')) as Config;

const galleryExamples: readonly GalleryExample[] = Object.entries(files)
  .map(([file, { default: example }]) => {
    const { secrets, limits: _, ...config } = withoutMasks(example);
    const isLogin = file.includes('/logins/');
    return {
      id: `${isLogin ? 'logins-' : ''}${config.slug}`,
      config,
      name: String(config.name),
      description: String(config.description),
      secrets: isObject(secrets) ? Object.keys(secrets) : [],
      isLogin,
    };
  })
  .toSorted((a, b) => Number(a.isLogin) - Number(b.isLogin) || a.name.localeCompare(b.name));

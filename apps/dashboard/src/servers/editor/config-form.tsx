import { Box, Stack } from '@mantine/core';
import { useWindowEvent } from '@mantine/hooks';
import type { Ref } from 'react';
import { useLocation, useNavigate } from 'react-router';
import { Collapsible } from '../../ui/collapsible.tsx';
import { Section } from '../../ui/section.tsx';
import { TwoColumns } from '../../ui/two-columns.tsx';
import { asText, toSlug } from '../config.ts';
import { declareField, Field, Fields, Input } from './fields.tsx';
import { LoginSection } from './login/login-section.tsx';
import { useEditor, useEditorState, useField } from './model/editor-context.ts';
import { type EditorTab, getTab } from './model/go-to-field.ts';
import { AccessSection } from './server/access-section.tsx';
import { ServerWideSection } from './server/server-wide-section.tsx';
import { ToolsSection } from './tools/tools-section.tsx';
import { ViewsSection } from './views/views-section.tsx';

type Props = { saveBarRef: Ref<HTMLDivElement>; toolBar: HTMLDivElement | null };

/** Configuration form: complete for a new server, one tab at a time for a stored one. The hidden tab keeps its state. */
export function ConfigForm({ saveBarRef, toolBar }: Props) {
  const { isNew } = useEditor();
  const { pathname } = useLocation();
  const navigate = useNavigate();
  const activeTab: EditorTab = pathname.endsWith('/settings') ? 'settings' : 'tools';
  useWindowEvent('toolhost:open-part', ({ detail }) => {
    const targetTab = getTab(detail);
    if (!isNew && targetTab !== activeTab) void navigate(pathname.replace(/[^/]*$/, targetTab), { replace: true });
  });
  return (
    <Box miw={0}>
      <Stack gap="md" display={isNew || activeTab === 'settings' ? 'flex' : 'none'}>
        <ServerSection />
        <AccessSection />
        <LoginSection />
        <ServerWideSection />
      </Stack>
      <Stack gap="md" display={isNew || activeTab === 'tools' ? 'flex' : 'none'} mt={isNew ? 'md' : 0}>
        <ToolsSection saveBarRef={saveBarRef} bar={isNew || activeTab === 'settings' ? null : toolBar} />
        <ViewsSection />
      </Stack>
    </Box>
  );
}

const publicHint = 'Anyone can see that the server exists, in the catalog and its card. Only callers see its tools.';
const iconsHint = 'As JSON, for example [{"src": "https://example.com/icon.png", "sizes": ["48x48"]}].';
const description = declareField.long(
  'description',
  'Description',
  'Purpose of the server, shown to agents and people.',
);
const publishingFields = [
  declareField.check('public', 'Public', publicHint),
  declareField.text('website_url', 'Website', '', { placeholder: 'https://example.com/docs', isMono: true }),
  declareField.json('icons', 'Icons', iconsHint, { minRows: 1 }),
];

function ServerSection() {
  const { isNew, store } = useEditor();
  const isPublished = useEditorState(({ config }) => publishingFields.some(({ subpath }) => String(subpath) in config));
  const name = useField(['name']);
  const slugField = useField(['slug']);
  const slug = toSlug(asText(name.value));
  /** Sets the name. The slug of a new server follows it until the slug is edited. */
  const setName = (next: unknown) => {
    name.set(next);
    if (isNew && asText(store.getState().config.slug) === slug) store.set(['slug'], toSlug(asText(next)));
  };
  /** Also shows problems of the slug, which follows the name. */
  const leaveName = () => {
    name.touch();
    if (isNew && asText(slugField.value) !== '') slugField.touch();
  };
  return (
    <Section title="Server">
      <Stack gap="sm">
        <TwoColumns>
          <Input
            kind="text"
            edited={{ ...name, set: setName, touch: leaveName }}
            label="Name"
            text="Shown to people and agents."
            isRequired
          />
          <Field
            kind="text"
            path={['slug']}
            label="Slug"
            isRequired
            isMono
            isFixed={!isNew}
            placeholder={slug || 'my-server'}
            text={isNew ? 'Part of the URL. Cannot be changed later.' : 'Cannot be changed.'}
          />
        </TwoColumns>
        <Fields path={[]} fields={[description]} />
        <Collapsible label="Publishing" isInitiallyOpen={isPublished}>
          <Fields path={[]} fields={publishingFields} />
        </Collapsible>
      </Stack>
    </Section>
  );
}

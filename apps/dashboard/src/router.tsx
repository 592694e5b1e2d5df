import type { ComponentType } from 'react';
import { createBrowserRouter, type RouteObject } from 'react-router';
import { basePath, loginCheckPath } from './base-path.ts';
import { Frame } from './frame/frame.tsx';
import { RouteFailure } from './frame/route-failure.tsx';
import { HomePage } from './home/home-page.tsx';
import { LoadingPage } from './ui/states/loading.tsx';

/** Returns a route whose page is loaded when it is opened. */
function lazyRoute<Name extends string>(load: () => Promise<Record<Name, ComponentType>>, name: Name) {
  return { lazy: async () => ({ Component: (await load())[name] }) };
}

const serverTabs: RouteObject[] = [
  { index: true, ...lazyRoute(() => import('./servers/home/server-home.tsx'), 'ServerHome') },
  {
    // Both tabs share one editor, so that unsaved input is available in either.
    ...lazyRoute(() => import('./servers/tabs/configuration-tab.tsx'), 'ConfigurationTab'),
    children: [{ path: 'tools' }, { path: 'settings' }],
  },
  { path: 'calls', ...lazyRoute(() => import('./calls/calls-page.tsx'), 'CallBrowser') },
  { path: 'try', ...lazyRoute(() => import('./servers/try/try-tab.tsx'), 'TryTab') },
  { path: 'connect', ...lazyRoute(() => import('./servers/connect/connect-tab.tsx'), 'ConnectTab') },
  { path: 'playground', ...lazyRoute(() => import('./playground/playground-tab.tsx'), 'PlaygroundTab') },
  { path: 'secrets', ...lazyRoute(() => import('./servers/tabs/secrets-tab.tsx'), 'SecretsTab') },
  { path: 'logins', ...lazyRoute(() => import('./servers/tabs/logins-tab.tsx'), 'LoginsTab') },
  { path: 'import', ...lazyRoute(() => import('./servers/reimport/import-tab.tsx'), 'ImportTab') },
  { path: 'versions', ...lazyRoute(() => import('./servers/tabs/versions-tab.tsx'), 'VersionsTab') },
  { path: 'options', ...lazyRoute(() => import('./servers/tabs/options-tab.tsx'), 'OptionsTab') },
];

const pages: RouteObject[] = [
  { index: true, Component: HomePage },
  { path: 'servers', ...lazyRoute(() => import('./servers/list/servers-page.tsx'), 'ServersPage') },
  { path: 'servers/new', ...lazyRoute(() => import('./servers/new/new-server-page.tsx'), 'NewServerPage') },
  { path: 'servers/new/gallery', ...lazyRoute(() => import('./servers/gallery/gallery-page.tsx'), 'GalleryPage') },
  { path: 'servers/new/import', ...lazyRoute(() => import('./servers/import/import-page.tsx'), 'ImportPage') },
  {
    path: 'servers/:slug',
    ...lazyRoute(() => import('./servers/server-page.tsx'), 'ServerPage'),
    children: serverTabs,
  },
  { path: 'keys', ...lazyRoute(() => import('./keys/keys-page.tsx'), 'KeysPage') },
  { path: 'calls', ...lazyRoute(() => import('./calls/calls-page.tsx'), 'CallsPage') },
  { path: 'audit', ...lazyRoute(() => import('./audit/audit-page.tsx'), 'AuditPage') },
  { path: 'usage', ...lazyRoute(() => import('./usage/usage-page.tsx'), 'UsagePage') },
  { path: 'notifications', ...lazyRoute(() => import('./notifications/notifications-page.tsx'), 'NotificationsPage') },
  { path: 'api-reference', ...lazyRoute(() => import('./frame/api-page.tsx'), 'ApiPage') },
  { path: 'settings', ...lazyRoute(() => import('./settings/settings-page.tsx'), 'SettingsPage') },
];

export function createRouter() {
  const routes: RouteObject[] = [
    {
      path: loginCheckPath,
      HydrateFallback: LoadingPage,
      ...lazyRoute(() => import('./servers/login-check/return-page.tsx'), 'LoginReturnPage'),
    },
    {
      path: '/',
      Component: Frame,
      ErrorBoundary: RouteFailure,
      HydrateFallback: LoadingPage,
      children: [
        { ErrorBoundary: RouteFailure, children: pages },
        { path: '*', ...lazyRoute(() => import('./frame/not-found-page.tsx'), 'NotFoundPage') },
      ],
    },
  ];
  return createBrowserRouter(routes, { basename: basePath || '/' });
}

/// <reference types="astro/client" />
declare namespace App {
  interface Locals {
    visit: import('coatcheck').VisitOf<typeof import('./lib/sessions').sessions>
  }
}

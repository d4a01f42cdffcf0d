{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id') }}
select id, customer, amount from {{ ref('orders') }}
